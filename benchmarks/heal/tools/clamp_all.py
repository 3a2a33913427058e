def clamp_all(values, low, high):
    return [max(min(v, low), high) for v in values]
