def receipt_lines(items, width):
    total = 0
    lines = []
    for name, price in [*items, ["TOTAL", None]]:
        if price is None:
            price = total
        else:
            total += price
        shown = str(price)
        dots = "." * (width - len(name))
        lines.append(name + dots + shown)
    return lines
