def tokenise(text):
    tokens = []
    i = 0
    while i < len(text):
        ch = text[i]
        if ch.isdigit():
            start = i
            while i < len(text) and (text[i].isdigit() or text[i] == "."):
                i += 1
            tokens.append(text[start:i])
        elif ch in "+-*/()":
            tokens.append(ch)
            i += 1
        elif ch.isspace():
            i += 1
        else:
            raise ValueError(f"unexpected {ch!r} at {i}")
    return tokens
