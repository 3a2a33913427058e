def dedupe_by(records, field):
    seen = set()
    kept = []
    for record in records:
        value = record[field]
        if value in seen:
            continue
        kept.append(record)
    return kept
