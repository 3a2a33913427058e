def apply_discounts(price, percents):
    steps = []
    for percent in percents:
        steps.append(lambda amount: amount * (100 - percent) / 100)
    for step in steps:
        price = step(price)
    return round(price, 2)
