def electricity_bill(months):
    base = 900
    price = 0
    for used in months:
        if used > 100:
            price += 100 * 30
            price += (used - 100) * 40
        else:
            price += used * 30
    return price + base
