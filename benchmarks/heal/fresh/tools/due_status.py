from datetime import date


def due_status(due, today):
    left = (date.fromisoformat(due) - date.fromisoformat(today)).days
    if left < 0:
        return "overdue by {-left}"
    if left == 0:
        return "due today"
    if left == 1:
        return "1 day left"
    return f"{left} days left"
