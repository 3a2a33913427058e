def read_settings(lines: list[str]) -> dict:
    """Turn lines like "name=value" into a dictionary."""
    settings = {}
    for line in lines:
        name, value = line.split("=")
        settings[name.strip()] = value.strip()
    return settings
