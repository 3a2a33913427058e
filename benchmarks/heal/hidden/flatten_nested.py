def flatten_nested(items):
    flat = []
    for item in items:
        if isinstance(item, list):
            flat.extend(flatten_nested(item))
        else:
            flat.append(item)
    return flat
