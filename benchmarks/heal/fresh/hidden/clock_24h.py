def clock_24h(text):
    clock, half = text.lower().split()
    hours, minutes = clock.split(":")
    hours = int(hours)
    if half == "pm" and hours != 12:
        hours += 12
    if half == "am" and hours == 12:
        hours = 0
    return f"{hours:02d}:{minutes}"
