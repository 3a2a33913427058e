def join_with_and(names):
    if not names:
        return ""
    *first, last = names
    return ", ".join(first) + " and " + last
