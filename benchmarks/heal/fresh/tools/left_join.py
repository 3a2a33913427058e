def left_join(orders, customers):
    names = {}
    for customer in customers:
        names[customer["id"]] = customer["name"]
    joined = []
    for order in orders:
        joined.append({**order, "customer": names[order["customer_id"]]})
    return joined
