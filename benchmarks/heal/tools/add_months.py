import calendar
from datetime import date


def add_months(start, months):
    day = date.fromisoformat(start)
    month = day.month + months
    year = day.year + month // 12
    month = month % 12
    last = calendar.monthrange(year, month)[1]
    return date(year, month, min(day.day, last)).isoformat()
