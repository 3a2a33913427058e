def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number; the first two are 0 and 1."""
    previous, current = 0, 1
    for _ in range(n):
        previous, current = current, previous + current
    return previous
