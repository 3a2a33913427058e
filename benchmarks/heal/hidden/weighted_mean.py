def weighted_mean(values, weights):
    total = 0
    for value, weight in zip(values, weights):
        total += value * weight
    return round(total / sum(weights), 2)
