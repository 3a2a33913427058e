from datetime import datetime


def real_dates(texts):
    dates = []
    try:
        for text in texts:
            day = datetime.strptime(text, "%d.%m.%Y")
            dates.append(day.date().isoformat())
    except ValueError:
        pass
    return dates
