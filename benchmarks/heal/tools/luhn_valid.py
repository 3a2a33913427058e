def luhn_valid(number):
    digits = [int(ch) for ch in number if ch.isdigit()]
    total = 0
    for position, digit in enumerate(digits):
        if position % 2 == 1:
            digit *= 2
            if digit > 9:
                digit -= 9
        total += digit
    return total % 10 == 0
