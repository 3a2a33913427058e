UNITS = {"B": 1, "KB": 1024, "MB": 1024**2}


def size_in_bytes(text):
    parts = text.strip().upper().split()
    number = float(parts[0])
    if len(parts) == 1:
        return int(number)
    return int(number * UNITS[parts[1]])
