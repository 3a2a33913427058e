def shipping_cost(grams, zone):
    RATES = {"eu": {"base": 490, "step": 120}, "us": {"base": 950, "step": 310}, "asia": {"base": 1100, "step": 275}}
    rate = RATES[zone]
    return rate["base"] + rate["step"] * (grams // 500)
