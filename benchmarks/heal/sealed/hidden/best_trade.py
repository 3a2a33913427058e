def best_trade(prices):
    best = None
    cheapest = 0
    for day in range(1, len(prices)):
        profit = prices[day] - prices[cheapest]
        if profit > 0 and (best is None or profit > best[2]):
            best = [cheapest, day, profit]
        if prices[day] < prices[cheapest]:
            cheapest = day
    return best
