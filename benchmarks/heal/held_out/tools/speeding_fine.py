def speeding_fine(speed, limit, school=False):
    over = speed - limit
    if over > 0:
        fine = 30
    elif over > 10:
        fine = 80
    elif over > 20:
        fine = 200
    elif over > 40:
        fine = 400
    else:
        fine = 0
    return fine * 2 if school else fine
