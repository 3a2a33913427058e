def rooms_needed(meetings):
    events = []
    for start, end in meetings:
        events.append((start, 1))
        events.append((end, -1))
    rooms = 0
    most = 0
    for _, change in sorted(events):
        rooms += change
        most = max(most, rooms)
    return most
