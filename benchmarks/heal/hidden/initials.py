def initials(name):
    letters = []
    for part in name.split():
        letters.append(part[0].upper())
    return "".join(letters)
