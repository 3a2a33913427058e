"""Memory of fixes: what past patches teach the next healing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from healkit import Healkit
from healkit.errors import UsageInvalid
from healkit.parts.heal.report import HealReport
from healkit.parts.learn.memory import FixMemory

PRICES = """
def load_prices(rows):
    total = 0
    for i in range(len(rows) - 1):
        total += rows[i]
    return total
"""
AGES = """
def add_ages(people, bonus):
    years = bonus
    for k in range(len(people) - 1):
        years += people[k]["age"]
    return years
"""
DAYS = """
def count_days(weeks):
    days = 0
    for w in range(len(weeks) - 1):
        days += len(weeks[w])
    return days
"""
EXAMPLES = {
    "load_prices": [
        {"arguments": {"rows": rows}, "result": sum(rows)} for rows in ([1, 2, 3], [4], [], [5, 5, 1, 2])
    ],
    "add_ages": [
        {"arguments": {"people": [{"age": age} for age in ages], "bonus": 2}, "result": sum(ages) + 2}
        for ages in ([30, 40], [7], [], [1, 2, 3])
    ],
    "count_days": [
        {"arguments": {"weeks": weeks}, "result": sum(map(len, weeks))}
        for weeks in ([[1], [1, 2]], [[1, 2, 3]], [], [[1], [2], [3, 4]])
    ],
}
FIXED = PRICES.replace("range(len(rows) - 1)", "range(len(rows))")


def fixed_by_hand(healkit: Healkit) -> None:
    """Fix the first tool, as an agent would whose patch was accepted."""
    healkit.vault.add("load_prices", PRICES, examples=EXAMPLES["load_prices"])
    request = healkit.requests.add("load_prices", FIXED, reason="The last row was left out.")
    healkit.requests.accept(request.id)


def heal(healkit: Healkit, name: str, code: str) -> HealReport:
    if name not in healkit.vault.names():
        healkit.vault.add(name, code, examples=EXAMPLES[name])
    return healkit.heal(name, advisors=["memory"], auto=True, budget_s=20)


@pytest.mark.slow
@pytest.mark.requirement("LEARN-4", "LEARN-5")
def test_a_fix_is_proposed_first_while_it_stands_and_not_once_it_was_taken_back(healkit: Healkit) -> None:
    fixed_by_hand(healkit)
    assert healkit.config.heal_advisors[0] == "memory"
    report = heal(healkit, "add_ages", AGES)
    assert (report.outcome, report.best.patch.advisor if report.best else "") == ("kept", "memory")
    assert "range(len(people))" in healkit.vault.get("add_ages").code
    assert report.best is not None
    assert "as in revision 2 of load_prices, kept 1 time" in report.best.patch.reason
    assert report.best.number == 1
    for name in ("load_prices", "add_ages"):
        healkit.vault.undo(name)
    assert heal(healkit, "count_days", DAYS).attempts == ()
    rows = FixMemory(healkit.database).show()
    assert {(row["kept"], row["proposed"]) for row in rows} == {(0, False)}
    for name in ("load_prices", "add_ages"):  # what was undone comes back, and counts again
        healkit.vault.undo(name)
    assert heal(healkit, "count_days", DAYS).outcome == "kept"


@pytest.mark.requirement("LEARN-4")
def test_a_declined_patch_counts_against_its_templates(healkit: Healkit) -> None:
    fixed_by_hand(healkit)
    healkit.vault.add("add_ages", AGES)
    code = AGES.replace("range(len(people) - 1)", "range(len(people))")
    healkit.requests.decline(healkit.requests.add("add_ages", code).id, "not like that")
    rows = [row for row in FixMemory(healkit.database).show() if row["kept"]]
    assert rows
    assert all(row["against"] and not row["proposed"] for row in rows)


def test_a_persons_own_change_is_not_remembered_as_a_fix(healkit: Healkit) -> None:
    healkit.vault.add("load_prices", PRICES)
    healkit.vault.patch("load_prices", FIXED)
    assert FixMemory(healkit.database).show() == []


def test_a_patch_that_fails_the_checks_is_not_proposed(healkit: Healkit) -> None:
    fixed_by_hand(healkit)
    # Here leaving the last one out is right, and something else is wrong.
    examples = [
        {"arguments": {"weeks": [[1], [1, 2]]}, "result": 2},
        {"arguments": {"weeks": []}, "result": 0},
    ]
    healkit.vault.add("count_days", DAYS, examples=examples)
    report = healkit.heal("count_days", advisors=["memory"], auto=True, budget_s=20)
    assert (report.outcome, report.attempts) == ("not_cured", ())


@pytest.mark.requirement("LEARN-5")
def test_reset_forgets_the_fixes_and_leaves_the_history(healkit: Healkit, tmp_path: Path) -> None:
    fixed_by_hand(healkit)
    memory = FixMemory(healkit.database)
    memory.export(tmp_path / "fixes.json")
    assert memory.import_(tmp_path / "fixes.json") > 0
    memory.reset()
    assert memory.show() == []
    assert len(healkit.vault.history("load_prices")) == 2


@pytest.mark.requirement("LEARN-5")
def test_what_another_vault_exported_is_proposed_and_validated(healkit: Healkit, tmp_path: Path) -> None:
    fixed_by_hand(healkit)
    assert FixMemory(healkit.database).export(tmp_path / "fixes.json") > 0
    with Healkit(tmp_path / "other.db") as other:
        FixMemory(other.database).import_(tmp_path / "fixes.json")
        report = heal(other, "add_ages", AGES)
        assert report.outcome == "kept"
        assert report.best is not None
        assert "as in an imported fix" in report.best.patch.reason


@pytest.mark.slow
@pytest.mark.requirement("LEARN-5")
def test_an_export_holds_no_secret_no_name_and_no_constant_of_the_users(
    healkit: Healkit, tmp_path: Path
) -> None:
    fixed_by_hand(healkit)
    before = 'def call_bank(account):\n    key = "k1-51HxJ2eZ"\n    return account.tax_id == 4711\n'
    healkit.vault.add("call_bank", before)
    after = before.replace("k1-51HxJ2eZ", "k1-99HxJ2eZ")
    healkit.vault.patch("call_bank", after, author="agent")
    healkit.vault.patch("call_bank", after.replace("tax_id == 4711", "tax_number != 4711.5"), author="agent")
    memory = FixMemory(healkit.database)
    shown = json.dumps(memory.show())
    assert "k1-51" in shown
    assert "tax_id" in shown
    assert memory.export(tmp_path / "fixes.json") < len(memory.show())
    text = (tmp_path / "fixes.json").read_text()
    for own in ("k1-", "tax_id", "4711", "account", "rows", "load_prices", "call_bank"):
        assert own not in text


def hostile(**changes: object) -> dict[str, object]:
    return {
        "version": 1,
        "fixes": [{"old": "_hole0 < _hole1", "new": "_hole0 <= _hole1", "good": 1} | changes],
    }


HOSTILE = [
    "", "[]", "[" * 100_000, *map(json.dumps, (
        {"version": 2, "fixes": []}, hostile(old="(" * 1900), hostile(old="-" * 1900 + "1"),
        hostile(new=" + ".join(["_hole0"] * 200)), hostile(new="x" * 2001), hostile(old="_hole0"),
        hostile(new="__import__('os').system(_hole0)"), hostile(new="_hole0.token"), hostile(place="\n# If.test"),
        hostile(good=10**9), hostile(good=-1), hostile(more=1), {"version": 1, "fixes": [hostile()["fixes"]]},
        {"version": 1, "fixes": [], "more": "x" * 1_000_000},
    )),
]  # fmt: skip


@pytest.mark.requirement("LEARN-5")
def test_a_hostile_file_is_refused_and_nothing_of_it_kept(healkit: Healkit, tmp_path: Path) -> None:
    path = tmp_path / "fixes.json"
    memory = FixMemory(healkit.database)
    accepted = []
    for content in HOSTILE:
        path.write_text(content)
        try:
            memory.import_(path)
            accepted.append(content[:100])
        except UsageInvalid as error:
            assert "cannot be imported" in error.message  # noqa: PT017 - of each
    assert accepted == []
    assert memory.show() == []
