def perfect_numbers(limit):
    result = []
    total = 0
    for number in range(2, limit):
        for divisor in range(1, number):
            if number % divisor == 0:
                total = total + divisor
        if total == number:
            result.append(number)
    return result
