def loan_plan(amount, rate, payment):
    rows = []
    balance = amount
    while balance > 0:
        interest = round(balance * rate / 100, 2)
        paid = round(min(payment, balance + interest), 2)
        balance = round(balance + interest - paid, 2)
        rows.append({"paid": paid, "left": balance})
    return rows
