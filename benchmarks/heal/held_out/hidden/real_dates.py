from datetime import datetime


def real_dates(texts):
    dates = []
    for text in texts:
        try:
            day = datetime.strptime(text, "%d.%m.%Y")
            dates.append(day.date().isoformat())
        except ValueError:
            pass
    return dates
