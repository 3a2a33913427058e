def in_order(numbers):
    for i in range(len(numbers) - 1):
        now = numbers[i]
        following = numbers[i + 1]
        if now <= following:
            return True
        else:
            return False
