def is_latin_square(table):
    wanted = set(range(1, len(table) + 1))
    for row in table:
        if set(row) != wanted:
            return False
    for column in zip(*table):
        if set(column) != wanted:
            return False
    return True
