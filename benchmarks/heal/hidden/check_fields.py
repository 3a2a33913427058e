TYPES = {"text": str, "number": (int, float), "flag": bool}


def check_fields(record, schema):
    wrong = []
    for field, kind in schema.items():
        value = record.get(field)
        if not isinstance(value, TYPES[kind]) or (kind == "number" and isinstance(value, bool)):
            wrong.append(field)
    return sorted(wrong)
