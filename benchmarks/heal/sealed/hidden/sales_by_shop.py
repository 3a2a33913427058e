from itertools import groupby
from operator import itemgetter

sales = arguments["sales"]
by_shop = itemgetter("shop")

summary = {}
for shop, group in groupby(sorted(sales, key=by_shop), key=by_shop):
    amounts = [sale["amount"] for sale in group]
    summary[shop] = {"count": len(amounts), "dearest": max(amounts)}

result = summary
