def parse_query_string(query):
    parsed = {}
    for pair in query.lstrip("?").split("&"):
        if not pair:
            continue
        key, value = pair.split("=")
        parsed.setdefault(key, []).append(value)
    return parsed
