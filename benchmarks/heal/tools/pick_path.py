def pick_path(data, path):
    current = data
    for step in path.split("."):
        if isinstance(current, list):
            if not step.isdigit() or int(step) >= len(current):
                return None
            current = current[step]
        elif isinstance(current, dict):
            if step not in current:
                return None
            current = current[step]
        else:
            return None
    return current
