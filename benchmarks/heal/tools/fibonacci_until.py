def numbers():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


def fibonacci_until(limit):
    found = []
    for number in numbers():
        if number > limit:
            continue
        found.append(number)
    return found
