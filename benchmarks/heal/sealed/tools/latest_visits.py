latest = {}
for customer, date in arguments["visits"]:
    if customer not in latest or date > latest[customer]:
        latest[customer] = date

ranking = sorted(latest.items(), key=lambda pair: pair[1], reverse=True)
result = [list(pair) for pair in ranking]
