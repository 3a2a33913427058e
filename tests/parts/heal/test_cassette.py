"""Healing of tools that call, from the record."""

from __future__ import annotations

import collections
import hashlib
from pathlib import Path
from typing import Any

import pytest
from healing_samples import Idea

from healkit import Healkit
from healkit.parts.heal.report import HealReport

HEAL_7 = pytest.mark.requirement("HEAL-7")
PRICES = {"tea": 4.0, "coffee": 3.0, "cocoa": 5.0}
BILL = """def bill(product: str, n: int) -> float:
    mcp.host.send(text=product)
    return mcp.host.price(product=product) + n
"""
EXAMPLES = [
    {"arguments": {"product": "tea", "n": 3}, "result": 12.0},
    {"arguments": {"product": "coffee", "n": 5}, "result": 15.0},
]


class Shop:
    """Healkit whose tools can call `price` and `send`; `made` counts the calls that were really made."""

    def __init__(self, healkit: Healkit, *, read_only: bool = False) -> None:
        self.healkit = healkit
        self.made: collections.Counter[str] = collections.Counter()

        def price(product: str) -> float:
            self.made["price"] += 1
            return PRICES[product]

        def send(text: str) -> str:
            self.made["send"] += 1
            return f"sent {text}"

        healkit.provide(price, read_only=read_only)
        healkit.provide(send)
        healkit.provide(lambda text: self.made.update(["stock"]), "stock")

    def fail(self, code: str, *runs: dict[str, Any], examples: list[Any] | None = None) -> None:
        """Add a tool and run it; the calls until then do not count."""
        self.healkit.vault.add("bill", code, examples=EXAMPLES if examples is None else examples)
        for arguments in runs:
            self.healkit.execute("bill", arguments=arguments)
        self.made.clear()

    def heal(self, *ideas: str, **more: Any) -> HealReport:
        """Heal it with these patches, or by search where there are none."""
        advisors: list[Any] = [Idea(*ideas)] if ideas else ["search"]
        return self.healkit.heal("bill", advisors=advisors, auto=True, **more)


@pytest.fixture
def shop(healkit: Healkit) -> Shop:
    return Shop(healkit)


@HEAL_7
def test_a_mistake_beside_a_call_is_found_from_the_record(shop: Shop) -> None:
    shop.fail(BILL, *(example["arguments"] for example in EXAMPLES))
    report = shop.heal()
    assert (report.outcome, report.verdict_code) == ("kept", "cured")
    assert report.best is not None
    assert "price(product=product) * n" in report.best.patch.code
    assert not shop.made
    assert (report.calls_answered > 0, report.calls_live) == (True, 0)
    assert f"{report.calls_answered} calls answered from the record, 0 live." in report.notes
    assert f"{report.calls_answered} calls answered from the record, 0 live." in str(report)


@HEAL_7
def test_the_tool_that_a_caller_calls_is_not_run(shop: Shop) -> None:
    """E1: the caller of a tool that is declared to have side effects sent six times in one healing."""
    shop.healkit.vault.add(
        "announce", "def announce(text: str):\n    return mcp.host.send(text=text)\n", side_effects=True
    )
    code = (
        "def bill(product: str, n: int) -> float:\n    mcp.vault.announce(text=product)\n    return n + n\n"
    )
    shop.fail(code, *(example["arguments"] for example in EXAMPLES), examples=[
        {"arguments": {"product": "tea", "n": 3}, "result": 9}, {"arguments": {"product": "coffee", "n": 5}, "result": 25},
    ])  # fmt: skip
    report = shop.heal()
    assert (report.outcome, report.verdict_code) == (
        "pending",
        "cured",
    )  # declared effects are a person's to judge
    assert not shop.made


FIXED = BILL.replace("+ n", "* n")
OTHER = FIXED.rstrip().replace("price(product=product)", "price(product='cocoa' if n == 3 else product)")


@pytest.mark.slow
@HEAL_7
@pytest.mark.parametrize(
    ("patch", "live", "read_only", "verdict", "made"),
    [
        (FIXED.replace("host.send", "host.stock"), (), False, "undecided", {}),
        (FIXED.replace("text=product", "text=product + '!'"), (), False, "unproven", {}),
        (OTHER, ("host.price",), False, "not_cured", {"price": 1}),
        (OTHER, (), True, "not_cured", {"price": 1}),
        (OTHER, ("host.send",), False, "unproven", {}),
        (OTHER + " + n", (), False, "undecided", {}),
        (OTHER + " + n", ("host.send",), False, "undecided", {}),
    ],
    ids=[
        "another tool",
        "other arguments",
        "allowed by name",
        "read-only",
        "another is allowed",
        "wrong by what other arguments had",
        "wrong by it, another is allowed",
    ],
)
def test_a_call_that_is_not_on_record_is_not_made_by_itself(
    healkit: Healkit, patch: str, live: tuple[str, ...], read_only: bool, verdict: str, made: dict[str, int]
) -> None:
    """Answers of other arguments, at the same place: a patch that passes by one is unproven, no other is wrong."""
    shop = Shop(healkit, read_only=read_only)
    answer = {"arguments": {"product": "tea", "n": 3}, "result": 12.0}
    shop.fail(BILL, answer["arguments"], examples=[answer])
    report = shop.heal(patch, live=live)
    assert report.attempts[0].verdict == verdict
    assert shop.made == made
    assert report.calls_live == sum(made.values())


@HEAL_7
def test_a_mistake_in_a_calls_arguments_is_found_where_the_call_may_be_made(healkit: Healkit) -> None:
    shop = Shop(healkit, read_only=True)
    code = (
        "def bill(product: str, n: int) -> float:\n    return mcp.host.price(product=product.upper()) * n\n"
    )
    shop.fail(code, *(example["arguments"] for example in EXAMPLES))
    report = shop.heal()
    assert (report.outcome, report.verdict_code) == ("kept", "cured")
    assert report.best is not None
    assert "upper" not in report.best.patch.code
    assert 0 < shop.made["price"] == report.calls_live <= 2 * 12


@HEAL_7
def test_an_answer_that_the_log_holds_in_part_decides_nothing(shop: Shop) -> None:
    def document() -> str:
        return "x" * 20_000

    shop.healkit.provide(document)
    shop.fail("def bill(n: int):\n    return len(mcp.host.document()) / n\n", {"n": 0}, examples=[])
    report = shop.heal("def bill(n: int):\n    return len(mcp.host.document()) / (n or 1)\n")
    assert "The call of mcp.host.document is not on record (its answer was cut)." in report.notes
    assert report.verdict_code in (None, "unproven", "silenced")


@pytest.mark.slow
@HEAL_7
def test_a_frame_that_a_call_gave_is_served_whole(shop: Shop) -> None:
    import pandas as pd

    frame = pd.DataFrame({"units": range(4000), "city": ["Bern", "Basel"] * 2000})

    def sales() -> pd.DataFrame:
        return frame

    shop.healkit.provide(sales)
    right = int(frame.units.sum())
    code = "def bill(n: int) -> int:\n    return int(mcp.host.sales()['unit'].sum()) + n\n"
    shop.fail(code, {"n": 0}, {"n": 1}, examples=[
        {"arguments": {"n": 0}, "result": right}, {"arguments": {"n": 1}, "result": right + 1},
    ])  # fmt: skip
    report = shop.healkit.heal("bill", advisors=["rules"], dry_run=True)
    assert (report.outcome, report.verdict_code) == ("shown", "cured")
    assert report.best is not None
    assert "['units']" in report.best.patch.code


@HEAL_7
@pytest.mark.requirement("HEAL-8")
def test_granted_files_are_read_and_never_written(shop: Shop, tmp_path: Path) -> None:
    folder = tmp_path / "granted"
    folder.mkdir()
    (folder / "rates.txt").write_text("4")
    code = f"def bill(n: int) -> int:\n    return int(open('{folder}/rates.txt').read()) + n\n"
    shop.healkit.vault.add("bill", code, examples=[
        {"arguments": {"n": 3}, "result": 12}, {"arguments": {"n": 5}, "result": 20},
    ])  # fmt: skip
    shop.healkit.vault.set_grants("bill", write=[str(folder)])
    report = shop.heal(code.replace("+ n", "* n"), files=[str(folder)])
    assert (report.outcome, report.verdict_code) == ("kept", "cured")
    digest = hashlib.sha256(b"4").hexdigest()[:12]
    assert f"The checks use the granted files as they are now: rates.txt (SHA-256 {digest}…)." in report.notes
    worse = code.replace("return", f"open('{folder}/rates.txt', 'w').write('9'); return")
    shop.healkit.vault.patch("bill", code)
    attempt = shop.heal(worse, files=["*"]).attempts[0]
    assert attempt.verdict == "undecided"
    assert attempt.why.endswith(
        "is unknown: a check does not repeat what the tool writes to a granted folder"
    )
    assert (folder / "rates.txt").read_text() == "4"


@pytest.mark.requirement("HEAL-8")
def test_a_patch_that_reaches_further_waits_for_a_person(shop: Shop) -> None:
    """E2: a patch that called, or imported, what the old code did not was kept by `auto=True`."""
    shop.fail(BILL, *(example["arguments"] for example in EXAMPLES))
    reach = "calls mcp.host.wire"
    report = shop.heal(FIXED.replace("    return", "    if n == 777: mcp.host.wire(n=n)\n    return"))
    assert report.outcome == "pending"
    assert report.attempts[0].diff.startswith(f"! Reaches further than the code it replaces: {reach}\n")
    assert f"Reaches further than the code it replaces: {reach}" in str(report)


@pytest.mark.slow
@HEAL_7
def test_another_process_heals_from_the_record_what_it_does_not_provide(shop: Shop) -> None:
    shop.fail(BILL, *(example["arguments"] for example in EXAMPLES))
    for name in ("price", "send", "stock"):
        shop.healkit.withdraw(name)
    report = shop.heal(FIXED)
    assert (report.outcome, report.verdict_code) == ("kept", "cured")
