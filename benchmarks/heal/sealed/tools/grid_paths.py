def grid_paths(rows, columns):
    if rows == 1 and columns == 1:
        return 1
    else:
        from_above = grid_paths(rows - 1, columns)
        from_left = grid_paths(rows, columns - 1)
        ways = from_above + from_left
        return ways
