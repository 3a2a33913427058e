def convert(text):
    lowered = text.lower()
    if lowered in ("true", "yes", "on"):
        return True
    if lowered in ("false", "no", "off"):
        return False
    if text.lstrip("-").isdigit():
        return int(text)
    return text


def is_comment(line):
    return line.startswith("#") or line.startswith(";")


def parse_ini(text):
    sections = {}
    current = sections.setdefault("default", {})
    for raw in text.splitlines():
        line = raw.strip()
        if not line or is_comment(line):
            continue
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1].strip(), {})
            continue
        key, value = line.split("=", 1)
        current[key.strip()] = convert(value.strip())
    return {name: values for name, values in sections.items() if values}
