def join_with_and(names):
    if not names:
        return ""
    if len(names) == 1:
        return names[0]
    *first, last = names
    return ", ".join(first) + " and " + last
