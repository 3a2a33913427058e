def living_around(grid, row, col):
    total = 0
    for r in range(max(row - 1, 0), min(row + 2, len(grid))):
        for c in range(max(col - 1, 0), min(col + 2, len(grid[0]))):
            total += grid[r][c]
    return total


def next_state(alive, neighbours):
    if alive:
        return 1 if neighbours in (2, 3) else 0
    return 1 if neighbours == 2 else 0


def life_step(grid):
    new = []
    for r, row in enumerate(grid):
        new.append([next_state(cell, living_around(grid, r, c)) for c, cell in enumerate(row)])
    return new
