balance = arguments.get("start", 0)
monthly = arguments["monthly"]
rate = arguments["rate"] / 100

result = []
for year in range(arguments["years"]):
    for month in range(12):
        balance += monthly
    balance += balance * rate
    result.append(round(balance, 2))
