def count_vowels(text):
    total = 0
    for ch in text:
        if ch in "aeiou":
            total += 1
    return total
