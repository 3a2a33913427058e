tickets = arguments["tickets"]

people = set()
count = 0
for ticket in tickets:
    if ticket["state"] != "open":
        continue
    count += 1
    owner = ticket.get("owner")
    if owner:
        people.add(owner)

result = {"people": sorted(people), "count": count}
