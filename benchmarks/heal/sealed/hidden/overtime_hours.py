from datetime import datetime

entries = arguments["entries"]
limit = 8

overtime = {}
for entry in entries:
    start = datetime.fromisoformat(entry["day"] + "T" + entry["start"])
    end = datetime.fromisoformat(entry["day"] + "T" + entry["end"])
    worked = (end - start).total_seconds() / 3600
    if worked > limit:
        overtime[entry["day"]] = round(worked - limit, 2)

result = overtime
