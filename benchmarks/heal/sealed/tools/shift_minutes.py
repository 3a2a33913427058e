def shift_minutes(shifts):
    total = 0
    for shift in shifts:
        begin, end = shift.split("-")
        minutes = []
        for clock in (begin, end):
            minutes.append(int(clock.replace(":", "")))
        worked = minutes[1] - minutes[0]
        total += worked
    return total
