def span(first, last):
    return str(first) if first == last else f"{first}-{last}"


def join_pages(pages):
    parts = []
    start = previous = None
    for page in sorted(set(pages)):
        if start is None:
            start = page
        elif page != previous + 1:
            parts.append(span(start, previous))
            start = page
        previous = page
    return ", ".join(parts)
