def without_letters(text, letters):
    position = 0
    while position < len(letters):
        letter = letters[position]
        small = letter.lower()
        big = letter.upper()
        text.replace(small, "")
        text.replace(big, "")
        position = position + 1
    return text
