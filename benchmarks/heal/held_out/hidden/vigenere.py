def vigenere(text, key):
    result = ""
    used = 0
    for letter in text:
        if letter.isalpha():
            shift = ord(key[used % len(key)]) - ord("a")
            used += 1
            base = ord("A") if letter.isupper() else ord("a")
            result += chr((ord(letter) - base + shift) % 26 + base)
        else:
            result += letter
    return result
