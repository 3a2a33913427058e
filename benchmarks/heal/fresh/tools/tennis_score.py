NAMES = ["0", "15", "30", "40"]


def tennis_score(points):
    a = points.count("A")
    b = points.count("B")
    if a >= 4 and a - b >= 2:
        return "game A"
    if b >= 4 and b - a >= 2:
        return "game B"
    if a > 3 and b > 3:
        if a == b:
            return "deuce"
        return "advantage A" if a > b else "advantage B"
    return NAMES[a] + ":" + NAMES[b]
