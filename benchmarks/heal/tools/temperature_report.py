readings = arguments["readings"]
limit = arguments["limit"]

hot = []
warmest = None
result = {"hot": hot, "warmest": warmest}

for day, degrees in readings.items():
    if degrees > limit:
        hot.append(day)
    if warmest is None or degrees > readings[warmest]:
        warmest = day
