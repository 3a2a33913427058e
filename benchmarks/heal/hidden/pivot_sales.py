def pivot_sales(sales):
    table = {}
    for sale in sales:
        region = sale["region"]
        product = sale["product"]
        if region not in table:
            table[region] = {}
        table[region][product] = table[region].get(product, 0) + sale["units"]
    return table
