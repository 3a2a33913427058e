def quarter_of(day):
    month = int(day.split("-")[1])
    return (month - 1) // 3 + 1
