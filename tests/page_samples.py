"""Database with something of all that the page shows."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pandas as pd

from healkit import Healkit
from healkit.errors import ArgumentsInvalid

#: Text of a tool's that would be seen if it became markup.
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"

MEAN = "def mean(values: list):\n    return sum(values) / len(value)\n"
PICK = """import pandas as pd


def pick(df: pd.DataFrame, column: str, values: list):
    return df[df[column].isin(values)]
"""
PRICES = 'def total(prices: dict):\n    """Add up the prices of a basket."""\n    return prices["apple"] + prices["pear"]\n'
_PLAN = [
    {
        "type": "execute_data_op", "tool": "pick", "viewName": "chosen",
        "params": {"df": "stocks", "column": "ticker", "values": ["AAPL", "FB"]},
        "intended": {"rows": 2, "entities": {"ticker": ["AAPL", "FB"]}},
    },
    {"type": "finalize", "finalViewName": "chosen"},
]  # fmt: skip


def fill(path: Path) -> None:
    """Run, fail, heal, decide and ask, so that each list of the page has something."""
    with Healkit(path) as hk:
        hk.vault.add(
            "mean",
            MEAN,
            description="Mean of the values.",
            examples=[{"arguments": {"values": [2, 4]}, "result": 3.0}],
        )
        hk.vault.add("total", PRICES)
        hk.vault.add(
            "greet", 'def greet(name: str):\n    return "hello " + name\n', description=f"Greets. {HOSTILE}"
        )
        hk.vault.add("pick", PICK)
        for number in range(3):
            hk.execute("mean", arguments={"values": [number]})
        hk.heal("mean", advisors=["rules", "search"], auto=True, budget_s=20)
        hk.execute("mean", arguments={"values": [1, 2]})
        for fruit in ("apple", "pear"):
            hk.execute("total", arguments={"prices": {fruit: 1, "token": SECRET}})
        for name in ("Ada", "Grace", HOSTILE):
            hk.execute("greet", arguments={"name": name})
        with contextlib.suppress(ArgumentsInvalid):
            hk.execute("greet", arguments={"name": 7})
        hk.requests.add(
            "total",
            PRICES.replace('prices["apple"] + prices["pear"]', "sum(prices.values())"),
            reason="A basket need not hold both fruits.",
            advisor="rules",
            verdict="cured",
        )
        stocks = pd.DataFrame({"ticker": ["AAPL", "AMZN", "META"], "price": [210.5, 180.0, 600.25]})
        hk.decide(
            f"What do Apple and Facebook cost? {HOSTILE}",
            {"stocks": stocks},
            tools=["pick"],
            chooser=_PLAN,
            aliases={"META": ["FB"]},
        )


if __name__ == "__main__":
    fill(Path(os.environ["HEALKIT_DB"]))
