from calendar import monthrange


def month_calendar(year, month):
    first, days = monthrange(year, month)
    week = [0] * first
    weeks = []
    for day in range(1, days + 1):
        week.append(day)
        if len(week) == 7:
            weeks.append(week)
            week = []
    if week:
        weeks.append(week + [0] * (7 - len(week)))
    return weeks
