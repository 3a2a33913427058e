def free_slots(meetings, start, end):
    free = []
    cursor = start
    for begin, finish in sorted(meetings):
        if begin > cursor:
            free.append([cursor, begin])
        cursor = max(cursor, finish)
    if cursor < end:
        free.append([cursor, end])
    return free
