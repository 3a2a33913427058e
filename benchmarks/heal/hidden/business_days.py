from datetime import date, timedelta


def business_days(first, last):
    day = date.fromisoformat(first)
    end = date.fromisoformat(last)
    count = 0
    while day <= end:
        if day.weekday() < 5:
            count += 1
        day += timedelta(days=1)
    return count
