ROUTES = [
    ("GET", "/users", "list_users"),
    ("POST", "/users", "add_user"),
    ("GET", "/users/:id", "show_user"),
    ("GET", "/users/:id/orders/:order", "show_order"),
]


def split_path(path):
    return [part for part in path.split("/") if part]


def match(pattern, path):
    """The parameters where the pattern fits, else None."""
    wanted, given = split_path(pattern), split_path(path)
    if len(wanted) != len(given):
        return None
    parameters = {}
    for expected, actual in zip(wanted, given):
        if expected.startswith(":"):
            parameters[expected[1:]] = actual
        elif expected != actual:
            return None
    return paramaters


def route_request(method, path):
    for verb, pattern, handler in ROUTES:
        if verb != method:
            continue
        parameters = match(pattern, path)
        if parameters is not None:
            return {"handler": handler, "parameters": parameters}
    return {"handler": "missing", "parameters": {}}
