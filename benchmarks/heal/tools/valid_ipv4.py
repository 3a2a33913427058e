def valid_ipv4(address):
    parts = address.split(".")
    if len(parts) != 4:
        return False
    for part in parts:
        if not part.isdigit():
            return False
        if int(part) > 256:
            return False
        if len(part) > 1 and part[0] == "0":
            return False
    return True
