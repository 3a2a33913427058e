def parking_fee(minutes):
    if minutes <= 30:
        return 0
    hours = (minutes + 59) // 60
    fee = hours * 200
    if fee > 1500:
        fee = 1500
    return fee
