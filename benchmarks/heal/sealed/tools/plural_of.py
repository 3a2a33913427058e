VOWELS = "aeiou"


def plural_of(noun):
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    return noun + "s"
