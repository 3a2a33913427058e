def mean_by_name(text):
    lines = text.splitlines()
    points = {}
    for i in range(1, len(lines)):
        name, value = lines[i].split(";")
        if name not in points:
            points[name] = []
        points[name].append(float(value))
    means = {}
    for name in points:
        means[name] = round(sum(points[name]) / len(points[name]), 2)
    return means
