from datetime import date


def payment_dates(month, count):
    year, number = map(int, month.split("-"))
    dates = []
    for _ in range(count):
        dates.append(date(year, number, 1).isoformat())
        number = number % 12 + 1
        if number == 1:
            year += 1
    return dates
