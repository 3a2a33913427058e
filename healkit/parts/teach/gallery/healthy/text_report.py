def text_report(text: str) -> dict:
    """Describe a text; the words are counted by another tool of the vault."""
    words = mcp.vault.word_count(text=text)
    return {"words": words, "characters": len(text)}
