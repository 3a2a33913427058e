def times_table(n: int, factors: list[int]) -> list[int]:
    """Multiply n by each of the factors."""
    multipliers = []
    for factor in factors:
        multipliers.append(lambda x, factor=factor: x * factor)
    return [multiply(n) for multiply in multipliers]
