def all_positive(numbers: list[float]) -> bool:
    """Say whether every number is greater than 0; an empty list has none that is not."""
    for number in numbers:
        if not number > 0:
            return False
    return True
