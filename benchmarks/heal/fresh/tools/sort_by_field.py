def sort_by_field(records, field):
    ordered = []
    for record in records:
        i = len(ordered)
        while i > 0 and ordered[i - 1][field] >= record[field]:
            i -= 1
        ordered.insert(i, record)
    return ordered
