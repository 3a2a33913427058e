from datetime import datetime

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def weekday_of(text):
    day = datetime.strptime("%d.%m.%Y", text.strip())
    return DAYS[day.weekday()]
