def risk_score(income, debts, late_payments):
    score = 0
    # TODO restore the weights
    return score
