from functools import reduce
from math import gcd


def gcd_of_list(numbers):
    return reduce(gcd, numbers, 0)
