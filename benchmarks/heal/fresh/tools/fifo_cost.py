def fifo_cost(purchases, sold):
    cost = 0
    for quantity, price in purchases:
        used = min(quantity, sold)
        cost += used * price
        sold -= quantity
    return cost
