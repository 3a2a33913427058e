def is_magic_square(square):
    size = len(square)
    target = sum(square[0])
    for i in range(size):
        row = 0
        column = 0
        for j in range(size):
            row += square[i][j]
            column += square[j][i]
        if row != target or column != target:
            return False
    down = 0
    up = 0
    for i in range(size):
        down += square[i][i]
        up += square[size - 1 - i][i]
    return down == target and up == target
