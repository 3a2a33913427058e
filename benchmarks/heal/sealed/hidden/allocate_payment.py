def allocate_payment(invoices, payment):
    still_open = {}
    for number, amount in invoices:
        paid = min(amount, payment)
        payment -= paid
        still_open[number] = amount - paid
    still_open["credit"] = payment
    return still_open
