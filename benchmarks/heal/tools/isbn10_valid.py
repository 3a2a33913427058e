def isbn10_valid(isbn):
    digits = isbn.replace("-", "")
    if len(digits) != 10:
        return False
    total = 0
    for i, ch in enumerate(digits):
        value = int(ch)
        total += value * (10 - i)
    return total % 11 == 0
