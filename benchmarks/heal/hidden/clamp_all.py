def clamp_all(values, low, high):
    return [min(max(v, low), high) for v in values]
