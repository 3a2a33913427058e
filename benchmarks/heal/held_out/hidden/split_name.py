def split_name(name):
    name = " ".join(name.split())
    if " " not in name:
        return {"first": "", "last": name}
    first, last = name.rsplit(" ", 1)
    return {"first": first, "last": last}
