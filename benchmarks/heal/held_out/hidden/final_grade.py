def final_grade(points, drop):
    ordered = sorted(points)
    kept = ordered[drop:]
    if not kept:
        return 0
    return round(sum(kept) / len(kept), 1)
