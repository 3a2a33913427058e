def rail_fence(text, rails):
    if rails == 1:
        return text
    rows = [[]] * rails
    row = 0
    step = 1
    for letter in text:
        rows[row].append(letter)
        if row == 0:
            step = 1
        elif row == rails:
            step = -1
        row += step
    return "".join("".join(row) for row in rows)
