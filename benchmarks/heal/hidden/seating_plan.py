def seating_plan(guests, tables, seats):
    plan = {table: [] for table in tables}
    standing = []
    index = 0
    for guest in guests:
        if index >= len(tables):
            standing.append(guest)
            continue
        table = tables[index]
        plan[table].append(guest)
        if len(plan[table]) == seats:
            index += 1
    return {"plan": plan, "standing": standing}
