def caesar_shift(text, places):
    shifted = []
    for ch in text:
        if ch.islower():
            shifted.append(chr((ord(ch) - ord("a") + places) % 26 + ord("a")))
        elif ch.isupper():
            shifted.append(chr((ord(ch) - ord("a") + places) % 26 + ord("A")))
        else:
            shifted.append(ch)
    return "".join(shifted)
