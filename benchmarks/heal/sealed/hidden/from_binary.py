def from_binary(bits):
    number = 0
    power = 1
    position = len(bits) - 1
    while position >= 0:
        if bits[position] == "1":
            number = number + power
        power = power * 2
        position = position - 1
    return number
