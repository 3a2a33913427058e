from datetime import date, timedelta


def next_weekday(start, weekday):
    day = date.fromisoformat(start)
    ahead = weekday - day.weekday()
    if ahead <= 0:
        ahead += 7
    return (day + timedelta(days=ahead)).isoformat()
