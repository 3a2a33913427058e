def friend_ideas(pairs, person):
    friends = {}
    for one, other in pairs:
        friends.setdefault(one, set()).add(other)
        friends.setdefault(other, set()).add(one)
    own = friends.get(person, set())
    ideas = set()
    for friend in own:
        ideas |= friends.get(friend, set())
    ideas -= own
    ideas.discard(person)
    return sorted(ideas)
