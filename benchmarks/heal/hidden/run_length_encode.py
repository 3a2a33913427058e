def run_length_encode(text):
    if not text:
        return ""
    out = []
    count = 1
    for before, now in zip(text, text[1:]):
        if before == now:
            count += 1
        else:
            out.append(before + str(count))
            count = 1
    out.append(text[-1] + str(count))
    return "".join(out)
