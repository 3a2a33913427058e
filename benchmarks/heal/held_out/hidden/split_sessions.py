def split_sessions(times, gap):
    sessions = []
    current = []
    for time in times:
        if current and time - current[-1] > gap:
            sessions.append(current)
            current = []
        current.append(time)
    if current:
        sessions.append(current)
    return sessions
