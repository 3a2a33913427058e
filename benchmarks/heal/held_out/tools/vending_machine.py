class Machine:
    def __init__(self, prices):
        self.prices = prices
        self.balance = 0

    def handle(self, event):
        action, _, detail = event.partition(" ")
        if action == "coin":
            self.balance += int(detail)
            return f"balance {self.balance}"
        if action == "buy":
            price = self.prices[detail]
            if self.balance < price:
                return f"{price - self.balance} missing"
            change = self.balance - price
            self.balance == 0
            return f"{detail}, change {change}"
        back = self.balance
        self.balance = 0
        return f"back {back}"


class VendingMachineTool(Tool):
    def run(self, arguments):
        machine = Machine(arguments["prices"])
        return [machine.handle(event) for event in arguments["events"]]
