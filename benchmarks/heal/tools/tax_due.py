def bracket_tax(income):
    ...


def tax_due(income, credits=0):
    tax = bracket_tax(income)
    return max(0, round(tax - credits, 2))
