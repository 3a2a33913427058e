"""Evidence about a patch, and what is called fixed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from healing_samples import Idea

from healkit import Healkit
from healkit.core.contracts.execution import Grants
from healkit.core.contracts.vault import VaultEntry
from healkit.parts.heal.inputs import neighbour_files
from healkit.parts.heal.verdicts import place_of
from healkit.parts.heal.workbench import Bench
from healkit.parts.trials.trials import Trials

HEAL_10 = pytest.mark.requirement("HEAL-10")
HALF = '''def half(n: int) -> float:
    """Half of a number.

    >>> half(3)
    1.5
    """
    return m / 2
'''


@HEAL_10
def test_a_patch_that_the_docstring_refutes_is_not_fixed(healkit: Healkit) -> None:
    """E1: doctests were ignored as soon as explicit examples existed."""
    examples = [{"arguments": {"n": n}, "result": n / 2} for n in (4, 6, 8)]
    healkit.vault.add("half", HALF, examples=examples)
    wrong, right = HALF.replace("m / 2", "float(n // 2)"), HALF.replace("m / 2", "n / 2")
    report = healkit.heal("half", advisors=[Idea(wrong, right)])
    verdicts = {attempt.patch.code: attempt.verdict for attempt in report.attempts}
    assert verdicts == {wrong: "not_cured", right: "cured"}
    assert "half(n=3)" in str(report) or "n=3" in str(report)


@HEAL_10
def test_another_authors_docstring_does_not_count_as_evidence(healkit: Healkit) -> None:
    examples = [{"arguments": {"n": n}, "result": n / 2} for n in (4, 6, 8)]
    healkit.vault.add("half", HALF, examples=examples)
    healkit.vault.patch("half", HALF.replace("1.5", "7.0"), author="model")
    report = healkit.heal("half", advisors=[Idea(HALF.replace("m / 2", "n / 2"))])
    assert report.verdict_code == "cured"


@HEAL_10
def test_the_examples_of_callers_are_checks(healkit: Healkit) -> None:
    code = "def price(n: int) -> int:\n    return n * 2 if n < 10 else n * m\n"
    healkit.vault.add("price", code, examples=[{"arguments": {"n": 20}, "result": 20}])
    healkit.vault.add(
        "bill",
        "def bill(n: int) -> int:\n    return mcp.vault.price(n=n) + 1\n",
        examples=[{"arguments": {"n": 3}, "result": 7}, {"arguments": {"n": 50}, "result": 51}],
    )
    wrong = code.replace("n * 2 if n < 10 else n * m", "n")
    report = healkit.heal("price", advisors=[Idea(wrong)])
    assert report.attempts[0].verdict == "not_cured"
    assert "bill(n=3)" in report.attempts[0].why
    assert (
        sum(bool(check.shown) for check in report.checks) == 1
    )  # where the caller fails, it may be to blame


@HEAL_10
def test_a_rival_that_differs_nearby_takes_the_claim_away(healkit: Healkit) -> None:
    """E2: `n * 2` and `n + n` are the same, `n + 3` is not, and one example does not tell."""
    code = "def double(n: int) -> int:\n    return n + 2\n"
    healkit.vault.add("double", code, examples=[{"arguments": {"n": 3}, "result": 6}])
    report = healkit.heal("double", advisors=[Idea(code.replace("n + 2", "n * 2"))])
    assert report.verdict_code == "unproven"
    healkit.vault.add_example("double", {"arguments": {"n": 5}, "result": 10})
    report = healkit.heal("double", advisors=[Idea(code.replace("n + 2", "n * 2"))])
    assert report.verdict_code == "cured"


@HEAL_10
def test_another_file_of_the_granted_folder_tells_patches_apart(healkit: Healkit, tmp_path: Path) -> None:
    """E3: inputs near a path were other paths, so nothing was compared."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, text in {"a.log": "x 1", "b.log": "y 1", "c.log": "z 7"}.items():
        (folder / name).write_text(text)
    code = "def errors(path: str) -> int:\n    text = open(path).read()\n    return int(text.split()[0])\n"
    examples = [{"arguments": {"path": str(folder / name)}, "result": 1} for name in ("a.log", "b.log")]
    healkit.vault.add("errors", code, examples=examples, grants={"read": [folder]})
    ideas = Idea(code.replace("[0]", "[1]"), code.replace("int(text.split()[0])", "len(text) // 3"))
    report = healkit.heal("errors", advisors=[ideas], files=[folder])
    assert report.verdict_code == "unproven"
    assert any("c.log" in note and "disagree" in note for note in report.notes)


@HEAL_10
def test_neighbours_of_a_path_lie_in_a_granted_folder(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "c.txt"):
        (tmp_path / name).write_text("1")
    entry = VaultEntry("t", "default", 1, "", "", grants=Grants(read=(str(tmp_path),)))
    found = neighbour_files(entry, [{"path": str(tmp_path / "a.csv"), "other": "/etc/hosts"}])
    assert [Path(one["path"]).name for one in found] == ["b.csv", "c.txt"]


@HEAL_10
def test_a_day_that_may_be_a_month_is_never_fixed(healkit: Healkit) -> None:
    """E8: with one example met by luck `format='mixed'` read 05/03 month-first, was *fixed* and kept."""
    code = "import pandas as pd\ndef months(df: pd.DataFrame):\n    return pd.to_datetime(df['day'], format='%Y-%m-%d').dt.year\n"
    frames = [
        pd.DataFrame({"day": days}) for days in (["05/03/2024", "2024-01-02"], ["07/08/2023", "2023-01-02"])
    ]
    examples = [
        {"arguments": {"df": frame}, "result": pd.Series([year, year], name="day", dtype="int32")}
        for frame, year in zip(frames, (2024, 2023), strict=True)
    ]
    healkit.vault.add("months", code, examples=examples)
    report = healkit.heal("months", advisors=[Idea(code.replace("'%Y-%m-%d'", "'mixed'"))])
    assert report.verdict_code == "unproven"
    assert report.best is not None
    assert "the day or the month may come first" in report.best.patch.doubt


@HEAL_10
@pytest.mark.parametrize(
    ("right", "said"),
    [
        ("sum(prices.get(name, 0) for name in names)", "It makes up a value"),
        ("sum(prices[name] for name in names if name in prices)", "It leaves something out"),
    ],
)
def test_a_default_or_a_drop_that_one_example_asks_for_is_not_fixed(
    healkit: Healkit, right: str, said: str
) -> None:
    code = "def bill(prices: dict, names: list) -> int:\n    return sum(prices[name] for name in names)\n"
    prices = {"tea": 4, "cocoa": 5}
    examples = [
        {"arguments": {"prices": prices, "names": ["tea", "milk"]}, "result": 4},
        {"arguments": {"prices": prices, "names": ["tea", "cocoa"]}, "result": 9},
    ]
    healkit.vault.add("bill", code, examples=examples)
    patch = code.replace("sum(prices[name] for name in names)", right)
    report = healkit.heal("bill", advisors=[Idea(patch)])
    assert report.verdict_code == "unproven"
    assert report.best is not None
    assert said in report.best.patch.doubt


@HEAL_10
def test_not_decided_comes_before_what_only_hides(healkit: Healkit) -> None:
    """E5: `return 14.0` was best, and the right patch, which lacks one call, was fifth or absent."""
    healkit.provide(lambda product: {"tea": 4.0, "milk": 7.0}[product], "price")
    code = "def bill(product: str, n: int) -> float:\n    return mcp.host.price(product=produkt) * n\n"
    healkit.vault.add("bill", code, examples=[{"arguments": {"product": "milk", "n": 2}, "result": 14.0}])
    right = code.replace("produkt", "product")
    hack = "def bill(product: str, n: int) -> float:\n    return 14.0\n"
    report = healkit.heal("bill", advisors=[Idea(hack, right)])
    assert [attempt.verdict for attempt in report.attempts] == ["undecided", "silenced"]
    assert place_of(report.attempts[0]) < place_of(report.attempts[1])
    assert 'live=["host.price"]' in report.reason
    report = healkit.heal("bill", advisors=["search"], budget_s=10.0)
    assert report.attempts[0].patch.code == right


@pytest.mark.requirement("HEAL-11")
def test_a_key_of_what_a_call_gave_is_found(healkit: Healkit) -> None:
    """E7: `w.temp` was found for a parameter only, and the advice named a server that does not exist."""
    healkit.provide(lambda city: {"temp": {"Bern": 4.0, "Basel": 7.5}[city]}, "weather")
    code = "def warm(city: str) -> float:\n    w = mcp.host.weather(city=city)\n    return w.temp * 2\n"
    examples = [
        {"arguments": {"city": "Bern"}, "result": 8.0},
        {"arguments": {"city": "Basel"}, "result": 15.0},
    ]
    healkit.vault.add("warm", code, examples=examples)
    for example in examples:
        healkit.execute("warm", arguments=example["arguments"])
    report = healkit.heal("warm", advisors=["rules"], auto=True)
    assert report.outcome == "kept"
    assert 'w["temp"]' in healkit.vault.get("warm").code


def test_no_advice_names_a_server_that_does_not_exist(healkit: Healkit) -> None:
    healkit.provide(lambda city: 4.0, "weather")
    code = "def warm(city: str) -> float:\n    return mcp.host.weather(city=city) + x\n"
    healkit.vault.add("warm", code, examples=[{"arguments": {"city": "Bern"}, "result": 8.0}])
    healkit.execute("warm", arguments={"city": "Bern"})
    other = "def warm(city: str) -> float:\n    return mcp.temp.weather(city=city)\n"
    report = healkit.heal("warm", advisors=[Idea(other)])
    assert report.attempts[0].verdict == "not_cured"
    assert "temp.weather" not in report.reason


@HEAL_10
def test_validation_ends_with_the_budget(healkit: Healkit) -> None:
    """E9: 19.8 s of a 10 s budget: ten seconds were added for what was found at the end."""
    searches = Trials(healkit.recorder, healkit.config)
    bench = Bench(searches, VaultEntry("t", "default", 1, "", "").ref, 100.0, reserve_s=15.0)
    assert 80.0 < bench.left_s <= 85.0
    assert 95.0 < bench.beside(0.0).left_s <= 100.0
