from datetime import datetime


def days_between(first, second):
    gap = date.fromisoformat(second) - date.fromisoformat(first)
    return abs(gap.days)
