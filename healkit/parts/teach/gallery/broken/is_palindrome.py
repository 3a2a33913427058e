def is_palindrome(text: str) -> bool:
    """Say whether the text reads the same backwards."""
    return text is text[::-1]
