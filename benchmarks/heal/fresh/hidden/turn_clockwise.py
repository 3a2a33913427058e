def turn_clockwise(grid):
    if not grid:
        return []
    turned = []
    for col in range(len(grid[0])):
        turned.append([grid[row][col] for row in range(len(grid) - 1, -1, -1)])
    return turned
