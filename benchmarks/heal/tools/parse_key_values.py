def parse_key_values(text):
    result_map = {}
    for part in text.split(";"):
        key, value = part.split("=", 1)
        result_map[key.strip()] = value.strip()
    return result_map
