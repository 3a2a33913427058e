def median(values):
    """Middle value, or the mean of the two in the middle."""
    if not values:
        return None
    ordered = values.sort()
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
