def is_palindrome(text: str) -> bool:
    """Say whether the text reads the same backwards."""
    return text == text[::-1]
