def _put(item, basket=[]):
    basket.append(item)
    return basket


def pack_baskets(items: list[str]) -> list:
    """Put each item into a basket of its own."""
    return [_put(item) for item in items]
