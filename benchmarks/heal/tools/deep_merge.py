def deep_merge(base, extra):
    merged = dict(base)
    for key, value in extra.items():
        merged[key] = value
    return merged
