def retry_delays(first, cap, deadline):
    delays = []
    elapsed = 0
    delay = first
    while True:
        delay = min(delay, cap)
        if elapsed + delay > deadline:
            break
        delays.append(delay)
        elapsed += delay
        delay *= 2
    return delays
