class Basket:
    items = []

    def __init__(self, owner):
        self.owner = owner

    def add(self, item):
        self.items.append(item)


class BasketTool(Tool):
    def run(self, arguments):
        baskets = {}
        for owner, item in arguments["orders"]:
            if owner not in baskets:
                baskets[owner] = Basket(owner)
            baskets[owner].add(item)
        return {owner: basket.items for owner, basket in baskets.items()}
