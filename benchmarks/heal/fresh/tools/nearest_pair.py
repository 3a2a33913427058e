def nearest_pair(numbers):
    sorted(numbers)
    best = None
    for a, b in zip(numbers, numbers[1:]):
        if best is None or b - a < best[1] - best[0]:
            best = [a, b]
    return best
