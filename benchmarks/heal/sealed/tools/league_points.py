def league_points(matches):
    table = {}
    for home, away, home_goals, away_goals in matches:
        table.setdefault(home, 0)
        table.setdefault(away, 0)
        if home_goals > away_goals:
            table[home] += 3
        elif away_goals > home_goals:
            table[away] += 3
    return table
