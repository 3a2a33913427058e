from datetime import date


def shared_days(first, second):
    start = max(date.fromisoformat(first[0]), date.fromisoformat(second[0]))
    end = min(date.fromisoformat(first[1]), date.fromisoformat(second[1]))
    return max(0, (end - start).days)
