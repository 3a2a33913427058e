def longest_streak(values):
    best = 0
    current = 0
    previous = None
    for value in values:
        if value == previous:
            current += 1
        else:
            current = 1
        best = max(best, current)
        previous = value
    return best
