def unique_guests(names):
    seen = set()
    guests = []
    for name in names:
        name = name.strip()
        if not name or name in seen:
            continue
        seen.add(name)
        guests.append(name)
    return guests
