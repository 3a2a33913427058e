BASE = {"tea": 200, "coffee": 250, "cake": 400}
FACTOR = {"s": 1.0, "m": 1.25, "l": 1.5}


def price_lookup(orders):
    cache = {}
    computed = 0
    prices = []
    for item, size in orders:
        if (item, size) not in cache:
            cache[item, size] = int(BASE[item] * FACTOR[size])
            computed += 1
        prices.append(cache[item, size])
    return {"prices": prices, "computed": computed}
