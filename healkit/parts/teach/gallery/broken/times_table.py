def times_table(n: int, factors: list[int]) -> list[int]:
    """Multiply n by each of the factors."""
    multipliers = []
    for factor in factors:
        multipliers.append(lambda x: x * factor)
    return [multiply(n) for multiply in multipliers]
