def unique_guests(names):
    seen = set()
    guests = []
    for name in names:
        name = name.strip()
        key = name.lower()
        if not name or key in seen:
            continue
        seen.add(key)
        guests.append(name)
    return guests
