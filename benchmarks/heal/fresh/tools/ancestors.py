def ancestors(parents, name):
    found = []
    for parent in parents.get(name, []):
        found.append(parent)
        found.append(ancestors(parents, parent))
    return found
