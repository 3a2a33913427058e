def bar_chart(values, width=10):
    if not values:
        return []
    top = max(values.values())
    lines = []
    for label in sorted(values):
        size = values[label] * width // top if top else 0
        lines.append(label + " " + "#" * size)
    return lines
