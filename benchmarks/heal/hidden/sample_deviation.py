import math


def mean(values):
    return sum(values) / len(values)


def sample_deviation(values):
    centre = mean(values)
    squares = [(v - centre) ** 2 for v in values]
    return round(math.sqrt(sum(squares) / (len(values) - 1)), 3)
