def pivot_sales(sales):
    table = {}
    for sale in sales:
        region = sale["region"]
        product = sale["product"]
        if region not in table:
            table[region] = {}
        table[region][product] += sale["units"]
    return table
