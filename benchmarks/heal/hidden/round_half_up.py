import math


def round_half_up(value: float) -> int:
    return math.floor(value + 0.5)
