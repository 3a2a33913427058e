def group_by_key(records, key):
    groups = {}
    for record in records:
        value = record.get(key, "none")
        groups[value].append(record)
    return groups
