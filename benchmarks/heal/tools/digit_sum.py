def digit_sum(n):
    n = abs(n)
    return n % 10 + digit_sum(n // 10)
