def average_speed(legs):
    km = 0
    hours = 0
    for leg in legs:
        if leg.get("skipped"):
            continue
        km += leg["km"]
        hours += leg["hours"]
    if hours == 0:
        return 0
    return round(km / hours, 1)
