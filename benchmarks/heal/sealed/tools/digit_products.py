def digit_products(number):
    steps = 0
    while number >= 10:
        product = 1
        for digit in str(number):
            product = product * int(digit)
        steps = steps + 1
    return steps
