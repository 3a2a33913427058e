def bracket_tax(income):
    tax, lower = 0, 0
    for upper, percent in ((9000, 0), (20000, 14), (60000, 31), (10**12, 42)):
        if income > lower:
            tax += (min(income, upper) - lower) * percent / 100
        lower = upper
    return tax


def tax_due(income, credits=0):
    tax = bracket_tax(income)
    return max(0, round(tax - credits, 2))
