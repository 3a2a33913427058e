def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number, counted from fibonacci(0) = 0."""
    previous, current = 0, 1
    for _ in range(n):
        growth = current / previous
        previous, current = current, previous + current
    return previous
