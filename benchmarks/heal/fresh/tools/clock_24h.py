def clock_24h(text):
    clock, half = text.lower().split()
    hours, minutes = clock.split(":")
    hours = int(hours)
    if half == "pm":
        hours += 12
    return f"{hours:02d}:{minutes}"
