def has_circle(imports):
    path = []

    def visit(name):
        if name in path:
            return True
        path.append(name)
        found = any(visit(other) for other in imports.get(name, []))
        return found

    return any(visit(name) for name in imports)
