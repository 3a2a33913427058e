def drop_negatives(numbers: list[float]) -> list[float]:
    """Return the numbers without the negative ones, in the same order."""
    for number in list(numbers):
        if number < 0:
            numbers.remove(number)
    return numbers
