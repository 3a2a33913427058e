def number_lines(text):
    numbered = []
    for number, line in enumerate(text.splitlines(), 1):
        numbered.append(number + ": " + line)
    return numbered
