def region_size(grid, row, col):
    colour = grid[row][col]
    visited = set()

    def fill(r, c):
        if not (0 <= r < len(grid) and 0 <= c < len(grid[0])):
            return 0
        if grid[r][c] != colour or (r, c) in visited:
            return 0
        return 1 + fill(r + 1, c) + fill(r - 1, c) + fill(r, c + 1) + fill(r, c - 1)

    return fill(row, col)
