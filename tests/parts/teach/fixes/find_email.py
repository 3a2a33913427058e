import re


def find_email(text: str) -> str:
    """Return the first e-mail address in the text, or "" if there is none."""
    match = re.search(r"[\w.]+@[\w.]+\.\w+", text)
    return match.group() if match else ""
