def receipt_lines(items, width):
    total = 0
    lines = []
    for name, price in [*items, ["TOTAL", None]]:
        if price is None:
            price = total
        else:
            total += price
        shown = f"{price:.2f}"
        dots = "." * (width - len(name) - len(shown))
        lines.append(name + dots + shown)
    return lines
