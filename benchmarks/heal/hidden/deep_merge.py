def deep_merge(base, extra):
    merged = dict(base)
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            value = deep_merge(merged[key], value)
        merged[key] = value
    return merged
