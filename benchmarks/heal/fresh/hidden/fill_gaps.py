def fill_gaps(readings):
    filled = []
    last = None
    for value in readings:
        if value is not None:
            last = value
        filled.append(last)
    return filled
