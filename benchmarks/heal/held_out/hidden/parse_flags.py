def parse_flags(words):
    options = {}
    rest = []
    i = 0
    while i < len(words):
        word = words[i]
        if not word.startswith("--"):
            rest.append(word)
            i += 1
        elif i + 1 < len(words) and not words[i + 1].startswith("--"):
            options[word[2:]] = words[i + 1]
            i += 2
        else:
            options[word[2:]] = True
            i += 1
    return {"options": options, "rest": rest}
