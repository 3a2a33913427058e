def parse_money(text):
    text = text.strip()
    negative = text.startswith("(") and text.endswith(")")
    number = text.strip("()").replace("$", "").replace(",", "")
    cents = round(float(number) * 100)
    return -cents if negative else cents
