"""Calls that a healing really makes."""

from __future__ import annotations

import pytest
from healing_samples import Idea

from healkit import Healkit
from healkit.errors import ConfigError

HEAL_11 = pytest.mark.requirement("HEAL-11")
PAY = """def pay(name: str, amount: int) -> int:
    fee = amounts // 10
    return mcp.host.transfer(to=name, amount=amount - fee)["paid"] + fee
"""
EXAMPLES = [
    {"arguments": {"name": name, "amount": n}, "result": n}
    for name, n in [("Ann", 10), ("Bob", 25), ("Cy", 40)]
]


class Bank:
    """Healkit with a tool that transfers; `made` has the amounts that were really transferred, in order."""

    def __init__(self, healkit: Healkit) -> None:
        self.healkit, self.made, self.told = healkit, list[int](), list[str]()

        def transfer(to: str, amount: int) -> dict[str, int]:
            assert any(
                f"transfer(amount={amount}, to={to!r})" in one for one in self.told
            )  # it was shown before
            self.made.append(amount)
            return {"paid": amount}

        healkit.provide(transfer)
        healkit.vault.add("pay", PAY, examples=EXAMPLES)
        healkit.execute("pay", arguments=EXAMPLES[0]["arguments"])
        assert self.made == []


@pytest.fixture
def bank(healkit: Healkit) -> Bank:
    return Bank(healkit)


@HEAL_11
@pytest.mark.parametrize(
    ("live", "most"),
    [("host.transfer", 1), pytest.param("host.transfer:2", 2, marks=pytest.mark.slow), ("host.*:9", 3)],
)
def test_as_many_calls_are_made_as_were_shown_and_allowed(bank: Bank, live: str, most: int) -> None:
    """E6: `live=["host.transfer"]` made 21 real transfers, with wrong amounts, in one healing."""
    report = bank.healkit.heal("pay", live=[live], budget_s=8.0, progress=bank.told.append)
    assert len(bank.made) == report.calls_live <= most
    shown = [note for note in report.notes if note.startswith("Live call ")]
    assert len(shown) == len(bank.made)
    assert bank.made


@pytest.mark.slow
@HEAL_11
def test_equal_calls_are_made_once_whatever_patch_makes_them(bank: Bank) -> None:
    right = PAY.replace("amounts", "amount")
    ideas = Idea(
        right.replace("// 10", "// 9"), right, right.replace("fee =", "fee ="), right + "\n# the same\n"
    )
    report = bank.healkit.heal(
        "pay", advisors=[ideas], live=["host.transfer:20"], auto=True, progress=bank.told.append
    )
    assert report.outcome == "kept"
    assert len(bank.made) == len(set(bank.made)) == report.calls_live


@HEAL_11
def test_the_broken_code_makes_no_live_call(bank: Bank) -> None:
    broken = PAY.replace("amounts", "amount").replace("- fee", "+ fee")
    bank.healkit.vault.patch("pay", broken)
    bank.healkit.heal(
        "pay",
        advisors=[Idea(broken.replace("+ fee)", "- 2 * fee)"))],
        live=["host.transfer:1"],
        progress=bank.told.append,
    )
    assert bank.made in ([], [8])


@HEAL_11
def test_a_call_that_declares_effects_is_never_made_nor_advised(bank: Bank) -> None:
    healkit = bank.healkit
    healkit.vault.add(
        "wire",
        "def wire(amount: int) -> int:\n    return mcp.host.transfer(to='x', amount=amount)['paid']\n",
        side_effects=True,
    )
    healkit.vault.add(
        "order",
        "def order(n: int) -> int:\n    return mcp.vault.wire(amount=m)\n",
        examples=[{"arguments": {"n": 3}, "result": 3}, {"arguments": {"n": 5}, "result": 5}],
    )
    report = healkit.heal("order", live=["vault.wire:9"], budget_s=6.0)
    assert (bank.made, report.calls_live) == ([], 0)
    assert "vault.wire declares effects, so healing never calls it." in report.notes
    assert "live=" not in report.reason


@HEAL_11
def test_a_number_of_calls_that_is_none_is_refused(bank: Bank) -> None:
    with pytest.raises(ConfigError, match="'many' is not a number of calls"):
        bank.healkit.heal("pay", live=["host.transfer:many"])
