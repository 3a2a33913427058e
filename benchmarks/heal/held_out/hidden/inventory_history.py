def inventory_history(stock, changes):
    history = []
    for item, amount in changes:
        stock[item] = stock.get(item, 0) + amount
        if stock[item] == 0:
            del stock[item]
        history.append(dict(stock))
    return history
