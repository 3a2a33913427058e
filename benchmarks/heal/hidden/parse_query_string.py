def parse_query_string(query):
    parsed = {}
    for pair in query.lstrip("?").split("&"):
        if not pair:
            continue
        key, _, value = pair.partition("=")
        parsed.setdefault(key, []).append(value)
    return parsed
