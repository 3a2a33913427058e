class Account:
    def __init__(self, balance=0):
        self.balance = balance

    def deposit(self, amount):
        self.balance += amount
        return True

    def withdraw(self, amount):
        if amount > self.balance:
            return False
        self.balance -= amount
        return True


class BankAccountTool(Tool):
    def run(self, arguments):
        account = Account(arguments.get("start", 0))
        refused = []
        for i, booking in enumerate(arguments["bookings"]):
            amount = booking["amount"]
            if booking["kind"] == "in":
                done = account.deposit(amount)
            else:
                done = account.withdraw(amount)
            if not done:
                refused.append(i)
        return {"balance": account.balance, "refused": refused}
