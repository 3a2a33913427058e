import csv
import io

rows = csv.DictReader(io.StringIO(arguments["text"]))

values = {}
total = 0
for row in rows:
    value = float(row["price"]) * int(row["quantity"])
    values[row["product"]] = round(value, 2)
    total += value

result = {"values": values, "total": round(total, 2)}
