from datetime import date


def weekly_totals(entries):
    totals = {}
    for text, hours in entries:
        day = date.fromisoformat(text)
        week = day.strftime("%Y-W%V")
        totals[week] = totals.get(week, 0) + hours
    return totals
