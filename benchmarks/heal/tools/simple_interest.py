def simple_interest(capital, percent, years):
    for _ in range(years):
        capital = capital + capital * percent
    return round(capital, 2)
