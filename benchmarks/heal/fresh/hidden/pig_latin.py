VOWELS = "aeiou"


def convert(word):
    if word[0] in VOWELS:
        return word + "way"
    for i, letter in enumerate(word):
        if letter in VOWELS:
            return word[i:] + word[:i] + "ay"
    return word + "ay"


def pig_latin(sentence):
    return " ".join(convert(word) for word in sentence.split())
