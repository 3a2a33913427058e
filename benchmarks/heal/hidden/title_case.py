SMALL = {"a", "an", "and", "the", "of", "in", "on", "to", "or"}


def title_case(text):
    words = []
    for word in text.lower().split():
        if word in SMALL and words:
            words.append(word)
        else:
            words.append(word.capitalize())
    return " ".join(words)
