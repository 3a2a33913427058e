import math


def round_half_up(value: float) -> int:
    return math.ceil(value - 0.5)
