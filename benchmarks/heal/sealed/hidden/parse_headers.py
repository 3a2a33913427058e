def parse_headers(lines):
    fields = {}
    for line in lines:
        if not line.strip():
            break
        name, value = line.split(":", 1)
        name = name.strip().lower()
        value = value.strip()
        if name in fields:
            fields[name] += ", " + value
        else:
            fields[name] = value
    return fields
