def add_digits(first, second):
    total = []
    carry = 0
    for place in range(max(len(first), len(second))):
        value = carry
        if place < len(first):
            value += first[place]
        if place < len(second):
            value += second[place]
        total.append(value % 10)
        carry = value // 10
    return total
