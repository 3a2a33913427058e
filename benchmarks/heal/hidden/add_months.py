import calendar
from datetime import date


def add_months(start, months):
    day = date.fromisoformat(start)
    month = day.month - 1 + months
    year = day.year + month // 12
    month = month % 12 + 1
    last = calendar.monthrange(year, month)[1]
    return date(year, month, min(day.day, last)).isoformat()
