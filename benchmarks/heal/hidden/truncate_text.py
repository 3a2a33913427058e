def truncate_text(text, limit=20):
    if len(text) <= limit:
        return text
    return text[: limit - 3] + "..."
