def largest_file(folder):
    best = biggest(folder, "")
    return best[0] if best else None


def biggest(folder, path):
    best = None
    for name, entry in folder.items():
        if isinstance(entry, dict):
            found = biggest(entry, path + name + "/")
        else:
            found = (path + name, entry)
        if found and (best is None or found[1] > best[1]):
            best = found
    return best
