def run_length_decode(text):
    out = ""
    number = 0
    for ch in text:
        if ch.isdigit():
            number = number * 10 + int(ch)
        else:
            out += ch * (number or 1)
            number = 0
    return out
