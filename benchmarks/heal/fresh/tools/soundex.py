CODES = {
    **dict.fromkeys("bfpv", "1"),
    **dict.fromkeys("cgjkqsxz", "2"),
    **dict.fromkeys("dt", "3"),
    "l": "4",
    **dict.fromkeys("mn", "5"),
    "r": "6",
}


def soundex(name):
    name = name.lower()
    code = name[0].upper()
    last = ""
    for letter in name[1:]:
        digit = CODES.get(letter, "")
        if digit and digit != last:
            code += digit
        if letter not in "hw":
            last = digit
    return code[:4]
