def best_student(points_of):
    best_name = ""
    best_mean = -1
    for name in points_of:
        points = points_of[name]
        total = 0
        for p in points:
            total += p
        mean = total / len(points)
        if mean > best_mean:
            best_mean = mean
            best_name = name
    return best_name
