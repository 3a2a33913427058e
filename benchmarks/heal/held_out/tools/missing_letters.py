def missing_letters(sentence):
    used = sentence.lower
    missing = ""
    for letter in "abcdefghijklmnopqrstuvwxyz":
        if letter not in used:
            missing += letter
    return missing
