import re


def censor_words(text, banned):
    clean = text
    for word in banned:
        pattern = r"\b" + re.escape(word) + r"\b"
        clean = re.sub(pattern, "*" * len(word), clean, flags=re.IGNORECASE)
    return clean
