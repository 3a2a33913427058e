def compound_interest(amount: float, percent: float, years: int = 1) -> float:
    """Return what an amount has grown to after some years of yearly interest."""
    return round(amount * (1 + percent / 100) ** years, 2)
