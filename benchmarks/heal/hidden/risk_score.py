def risk_score(income, debts, late_payments):
    score = 0
    score += min(60, 100 * debts // max(income, 1))
    score += min(40, 8 * late_payments)
    return score
