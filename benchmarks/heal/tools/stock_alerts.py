def stock_alerts(stock, minimum):
    alerts = []
    for item in sorted(stock):
        if stock[item] > minimum
            alerts.append({"item": item, "order": minimum - stock[item]})
    return alerts
