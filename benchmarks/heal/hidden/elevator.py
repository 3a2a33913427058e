def elevator(commands, top):
    floor = 0
    visited = [0]
    for command in commands:
        if command == "up":
            if floor < top:
                floor += 1
        elif command == "down":
            if floor > 0:
                floor -= 1
        elif command == "reset":
            floor = 0
        visited.append(floor)
    return {"floor": floor, "visited": visited}
