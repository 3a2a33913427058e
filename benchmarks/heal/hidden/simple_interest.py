def simple_interest(capital, percent, years):
    for _ in range(years):
        capital = capital + capital * percent / 100
    return round(capital, 2)
