def clean_phone(number: str) -> str:
    """Return a phone number without its spaces and dashes."""
    number.replace(" ", "")
    number.replace("-", "")
    return number
