def pass_rate(points, limit):
    passed = 0
    total = len(points)
    if total == 0:
        return 0
    for p in points:
        if p >= limit:
            passed = passed + 1
    rate = passed / total * 100
    rate = round(rate, 1)
    return rate
