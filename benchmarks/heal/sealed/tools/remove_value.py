def remove_value(items, value):
    i = 0
    while i < len(items):
        if items[i] == value:
            items.pop(i)
        i = i + 1
    return items
