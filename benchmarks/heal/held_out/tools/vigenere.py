def vigenere(text, key):
    result = ""
    for i, letter in enumerate(text):
        if letter.isalpha():
            shift = ord(key[i % len(key)]) - ord("a")
            base = ord("A") if letter.isupper() else ord("a")
            result += chr((ord(letter) - base + shift) % 26 + base)
        else:
            result += letter
    return result
