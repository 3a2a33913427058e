def justify_line(words, width):
    if len(words) == 1:
        return words[0].ljust(width)
    gaps = len(words) - 1
    spaces = width - sum(len(word) for word in words)
    each, extra = divmod(spaces, gaps)
    line = ""
    for i, word in enumerate(words[:-1]):
        line += word + " " * each
        if i < extra:
            line += " "
    return line + words[-1]
