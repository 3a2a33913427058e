readings = arguments["readings"]
limit = arguments["limit"]

hot = []
warmest = None
for day, degrees in readings.items():
    if degrees > limit:
        hot.append(day)
    if warmest is None or degrees > readings[warmest]:
        warmest = day

result = {"hot": hot, "warmest": warmest}
