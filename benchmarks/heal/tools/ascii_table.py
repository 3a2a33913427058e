def column_widths(rows):
    widths = [0] * len(rows[0])
    for row in rows:
        for i, cell in enumerate(row):
            widths[i] = max(widths[i], len(str(cell)))
    return widths


def format_row(row, widths):
    cells = []
    for i, cell in enumerate(row):
        cells.append(str(cell).ljust(widths[0]))
    return " | ".join(cells).rstrip()


def ascii_table(rows):
    if not rows:
        return []
    widths = column_widths(rows)
    return [format_row(row, widths) for row in rows]
