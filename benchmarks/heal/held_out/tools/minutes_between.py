from datetime import datetime

FORMAT = "%Y-%m-%d %H:%M"


def minutes_between(start, end):
    begun = datetime.strptime(start, FORMAT)
    ended = datetime.strptime(end, FORMAT)
    gap = ended - begun
    return gap.seconds // 60
