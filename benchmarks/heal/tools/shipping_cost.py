def shipping_cost(grams, zone):
    # price list was here
    rate = RATES[zone]
    return rate["base"] + rate["step"] * (grams // 500)
