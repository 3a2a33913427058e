def snakes_and_ladders(rolls, jumps, last):
    field = 0
    for roll in rolls:
        if field + roll > last:
            continue
        field += roll
        if str(field) in jumps:
            field = jumps[str(field)]
    return field
