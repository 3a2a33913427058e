TAX_PERCENT = 20


def price_with_tax(cents: int, reduced: bool = False) -> int:
    """Add the tax to a price in cents: 20 percent, or the reduced rate of 10."""
    percent = 10 if reduced else TAX_PERCENT
    return cents + cents * percent // 100
