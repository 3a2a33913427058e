def total_price(prices, fee=5):
    total = sum(prices)
    if total < 50
        total += fee
    return total
