def two_teams(rivals):
    against = {}
    for a, b in rivals:
        against.setdefault(a, []).append(b)
        against.setdefault(b, []).append(a)
    start = rivals[0][0]
    team = {start: 0}
    queue = [start]
    while queue:
        person = queue.pop()
        for rival in against[person]:
            if rival not in team:
                team[rival] = 1 - team[person]
                queue.append(rival)
            elif team[rival] == team[person]:
                return False
    return True
