def perfect_numbers(limit):
    result = []
    for number in range(2, limit + 1):
        total = 0
        for divisor in range(1, number):
            if number % divisor == 0:
                total = total + divisor
        if total == number:
            result.append(number)
    return result
