items = arguments["items"]
discount = arguments.get("discount", 0)

total = 0
for item in items:
    total += item["price"] * item["qty"]

total -= total * discount / 100
result = {"total": round(total, 2), "lines": len(items)}
