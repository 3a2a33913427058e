def rotate_list(items, places):
    if not items:
        return []
    shift = places % len(items)
    return items[-shift:] + items[:-shift]
