def add_totals(table):
    rows = []
    for row in table:
        rows.append(row + [sum(row)])
    totals = [sum(column) for column in zip(*rows)]
    rows.append(totals)
    return rows
