def read_settings(lines: list[str]) -> dict:
    """Turn lines like "name=value" into a dictionary."""
    settings = {}
    for line in lines:
        name, value = line.split("=", 1)
        settings[name.strip()] = value.strip()
    return settings
