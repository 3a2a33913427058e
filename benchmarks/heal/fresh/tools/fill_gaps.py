def fill_gaps(readings):
    filled = []
    last = None
    for value in readings:
        if value:
            last = value
        filled.append(last)
    return filled
