def diff_stat(diff):
    stats = {}
    name = None
    for line in diff.splitlines():
        if line.startswith("+++ "):
            name = line[4:].removeprefix("b/")
            stats[name] = {"added": 0, "removed": 0}
        elif line.startswith("+"):
            stats[name]["added"] += 1
        elif line.startswith("-"):
            stats[name]["added"] -= 1
    return stats
