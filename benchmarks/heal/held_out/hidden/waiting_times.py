def waiting_times(customers):
    free_at = 0
    waits = []
    for arrival, duration in customers:
        wait = max(0, free_at - arrival)
        waits.append(wait)
        free_at = arrival + wait + duration
    return waits
