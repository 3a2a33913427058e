import json

catalogue = json.loads(arguments["catalogue"])
orders = arguments["orders"]

lines = []
for number, amount in orders:
    name = catalogue.get(number, "unknown")
    lines.append(f"{amount} x {name}")

result = lines
