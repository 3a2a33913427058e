def wrap_words(text: str, width: int) -> list:
    lines = []
    current = ""
    for word in text.split():
        # +1 is for the space
        if current and len(current) + 1 + len(word) > width:
            lines.append(current)
            current = word
        else:
            current = word if not current else current + " " + word
    if current:
        lines.append(current)
    return lines
