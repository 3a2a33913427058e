from datetime import datetime

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def weekday_of(text):
    day = datetime.strptime(text.strip(), "%d.%m.%Y")
    return DAYS[day.weekday()]
