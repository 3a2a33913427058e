def isbn10_valid(isbn):
    digits = isbn.replace("-", "")
    if len(digits) != 10:
        return False
    total = 0
    for i, ch in enumerate(digits):
        if ch == "X" and i == 9:
            value = 10
        else:
            value = int(ch)
        total += value * (10 - i)
    return total % 11 == 0
