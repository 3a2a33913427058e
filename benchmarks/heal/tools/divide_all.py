def divide_all(numbers, divisor):
    quotients = []
    for number in numbers:
        try:
            quotients.append(number / divisor)
        except ValueError:
            quotients.append(None)
    return quotients
