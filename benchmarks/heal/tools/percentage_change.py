def percentage_change(old, new):
    return round((new - old) / old * 100, 1)
