def _put(item, basket=None):
    basket = [] if basket is None else basket
    basket.append(item)
    return basket


def pack_baskets(items: list[str]) -> list:
    """Put each item into a basket of its own."""
    return [_put(item) for item in items]
