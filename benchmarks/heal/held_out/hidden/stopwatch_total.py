def stopwatch_total(events):
    total = 0
    started = None
    for action, time in events:
        if action == "start" and started is None:
            started = time
        elif action == "stop" and started is not None:
            total += time - started
            started = None
        elif action == "reset":
            total = 0
            started = None
    return total
