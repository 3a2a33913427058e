def category_totals(text):
    totals = {}
    for line in text.split("\n"):
        category, amount = line.split(",")
        category = category.strip()
        totals[category] = totals.get(category, 0) + int(amount)
    return totals
