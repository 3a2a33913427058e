def trip_balances(expenses):
    balances = {}
    for expense in expenses:
        share = expense["amount"] / len(expense["people"])
        for person in expense["people"]:
            balances[person] = balances.get(person, 0) - share
        balances[expense["payer"]] = balances.get(expense["payer"], 0) + expense["amount"]
    return {name: round(balances[name], 2) for name in sorted(balances)}
