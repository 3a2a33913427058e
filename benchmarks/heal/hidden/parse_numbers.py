def parse_numbers(texts):
    numbers, bad = [], 0
    for text in texts:
        try:
            numbers.append(int(text))
        except ValueError:
            bad += 1
    return {"numbers": numbers, "bad": bad}
