"""Samples for the tests of the post-mortem."""

from __future__ import annotations

NESTED = """\
import pandas as pd

def mean(table, column, weights):
    total = int(table[column].sum())
    return total / sum(weights)

def report(n):
    table = pd.DataFrame({"price": range(n), "sold": range(n)})
    weights = [0] * n
    return {"mean": mean(table, "price", weights)}
"""
