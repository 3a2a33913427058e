def percentage_change(old, new):
    if old == 0:
        return None
    return round((new - old) / old * 100, 1)
