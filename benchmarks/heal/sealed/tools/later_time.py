def later_time(start, minutes):
    hour, minute = start.split(":")
    total = int(hour) * 60 + int(minute) + minutes
    hours = total // 60
    rest = total % 60
    return f"{hours:02}:{rest:02}"
