def connected_groups(people, pairs):
    friends = {person: set() for person in people}
    for a, b in pairs:
        friends[a].add(b)
    groups = []
    seen = set()
    for person in sorted(people):
        if person in seen:
            continue
        group, pending = set(), [person]
        while pending:
            current = pending.pop()
            if current in group:
                continue
            group.add(current)
            pending.extend(friends[current])
        seen |= group
        groups.append(sorted(group))
    return groups
