"""Declared examples as checks."""

from __future__ import annotations

from healkit import Healkit
from healkit.core.contracts.patches import Check
from healkit.parts.heal.case import checks_of

CODE = "def double(n):\n    return n * 2\n"


def test_each_example_is_a_check_that_says_what_is_right(healkit: Healkit) -> None:
    entry = healkit.vault.add("double", CODE, examples=[
        {"arguments": {"n": 1}, "result": 2},
        {"arguments": {"n": 3}, "result": None},
        {"arguments": {"n": None}, "raises": "TypeError"},
        {"call": "double('a')", "result": "aa"},
        {"arguments": {"n": 7}},
    ])  # fmt: skip
    assert checks_of(entry) == [
        Check(origin="declared", arguments={"n": 1}, known=True, expected=2),
        Check(origin="declared", arguments={"n": 3}, known=True, expected=None),
        Check(origin="declared", arguments={"n": None}, known=True, raises="TypeError"),
        Check(origin="declared", call="double('a')", known=True, expected="aa"),
        Check(origin="declared", arguments={"n": 7}),
    ]
    assert [check.binding for check in checks_of(entry)] == [True, True, True, True, False]
