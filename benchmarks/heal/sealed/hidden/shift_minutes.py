def shift_minutes(shifts):
    total = 0
    for shift in shifts:
        begin, end = shift.split("-")
        minutes = []
        for clock in (begin, end):
            parts = clock.split(":")
            minutes.append(int(parts[0]) * 60 + int(parts[1]))
        worked = minutes[1] - minutes[0]
        if worked < 0:
            worked += 24 * 60
        total += worked
    return total
