from datetime import date, timedelta


def hotel_bill(arrival, nights, price):
    first = date.fromisoformat(arrival)
    total = 0
    for night in range(nights):
        day = first + timedelta(days=night)
        if day.weekday() in (5, 6):
            total += price * 1.2
        else:
            total += price
    if nights > 7:
        total *= 0.9
    return round(total, 2)
