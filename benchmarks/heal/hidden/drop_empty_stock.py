def drop_empty_stock(stock):
    for item in list(stock):
        if stock[item] <= 0:
            del stock[item]
    return stock
