def clean_phone(number: str) -> str:
    """Return a phone number without its spaces and dashes."""
    number = number.replace(" ", "")
    number = number.replace("-", "")
    return number
