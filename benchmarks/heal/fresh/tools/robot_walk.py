MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


def robot_walk(commands):
    x = y = 0
    facing = 0
    for command in commands:
        if command == "L":
            facing = (facing - 1) % 4
        elif command == "R":
            facing = (facing + 1) % 4
        else:
            dx, dy = MOVES[facing]
            x += dx
            y += dx
    return {"x": x, "y": y, "facing": "NESW"[facing]}
