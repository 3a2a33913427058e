from datetime import datetime

invoices = arguments["invoices"]

totals = {}
for invoice in invoices:
    date = datetime.strptime(invoice["date"], "%d.%m.%Y")
    month = date.strftime("%Y-%m")
    totals[month] = totals.get(month, 0) + invoice["amount"]

result = [[month, totals[month]] for month in sorted(totals)]
