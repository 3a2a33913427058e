def transpose(rows):
    if not rows:
        return []
    turned = [[None] * len(rows) for _ in rows[0]]
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            turned[j][i] = cell
    return turned
