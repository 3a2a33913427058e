def is_symmetric(table):
    size = len(table)
    symmetric = True
    row = 0
    while row < size:
        column = 0
        while column < size:
            if table[row][column] == table[column][row]:
                symmetric = True
            else:
                symmetric = False
            column += 1
        row += 1
    return symmetric
