def rotate_list(items, places):
    shift = places % len(items)
    return items[-shift:] + items[:-shift]
