def minutes(clock):
    hours, mins = clock.split(":")
    return int(hours) * 60 + int(mins)


def next_bus(times, now):
    best = None
    for time in times:
        wait = minutes(time) - minutes(now)
        if wait < 0:
            wait += 24 * 60
        if best is None or wait < best:
            best = wait
    return best
