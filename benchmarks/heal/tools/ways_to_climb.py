def ways_to_climb(n, memo=None):
    if memo is None:
        memo = {}
    if n in memo:
        return memo[n]
    if n <= 1:
        return n
    memo[n] = ways_to_climb(n - 1, memo) + ways_to_climb(n - 2, memo)
    return memo[n]
