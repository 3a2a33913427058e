def distinct_words(words: list[str]) -> list[str]:
    """Return the words in alphabetical order, each of them once."""
    ordered = sorted(words)
    return list(dict.fromkeys(ordered))
