def factorial(n: int) -> int:
    """Multiply the whole numbers from 1 to n; factorial(0) is 1."""
    if n == 0:
        return 1
    return n * factorial(n - 1)
