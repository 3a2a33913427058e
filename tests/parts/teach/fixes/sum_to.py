def sum_to(n: int) -> int:
    """Add up the whole numbers from 1 to n, both included."""
    total = 0
    for number in range(1, n + 1):
        total += number
    return total
