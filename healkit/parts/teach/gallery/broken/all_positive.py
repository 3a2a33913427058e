def all_positive(numbers: list[float]) -> bool:
    """Say whether every number is greater than 0; an empty list has none that is not."""
    for number in numbers:
        if number > 0:
            return True
        return False
    return True
