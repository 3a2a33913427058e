def hex_to_rgb(colour):
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = digits * 2
    channels = []
    for i in range(0, 6, 2):
        channels.append(int(digits[i : i + 2], 16))
    return channels
