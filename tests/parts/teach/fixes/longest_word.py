def longest_word(text: str) -> str:
    """Return the longest word of a text, the first one if several are equally long."""
    longest = ""
    for word in text.split():
        if len(word) > len(longest):
            longest = word
    return longest
