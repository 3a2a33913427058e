def middle_item(items: list) -> object:
    """Return the item in the middle; of two middle ones, the second."""
    middle = len(items) // 2
    return items[middle]
