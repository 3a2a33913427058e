def fifo_cost(purchases, sold):
    cost = 0
    for quantity, price in purchases:
        used = min(quantity, sold)
        cost += used * price
        sold -= used
    if sold > 0:
        return None
    return cost
