def run_length_decode(text):
    out = ""
    number = 0
    for ch in text:
        if ch.isdigit():
            number = number + int(ch)
        else:
            out += ch * number
            number = 0
    return out
