def maze_steps(maze):
    height, width = len(maze[0]), len(maze)
    queue = [(0, 0, 0)]
    seen = {(0, 0)}
    while queue:
        row, col, steps = queue.pop(0)
        if row == height - 1 and col == width - 1:
            return steps
        for r, c in ((row + 1, col), (row - 1, col), (row, col + 1), (row, col - 1)):
            if 0 <= r < height and 0 <= c < width and maze[r][c] != "#" and (r, c) not in seen:
                seen.add((r, c))
                queue.append((r, c, steps + 1))
    return None
