"""Success predicted, and warnings that are counts on record."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from healkit import Healkit
from healkit.core.contracts.vault import VaultEntry
from healkit.core.store.database import Database
from healkit.parts.learn import success
from healkit.parts.learn.success import Run, features, play, success_row, warning

pytestmark = pytest.mark.requirement("LEARN-3")

CONVERT = "def convert(value, **more):\n    return value * {'km': 1.0, 'mi': 1.6}[more['unit']]\n"


def by_arguments(count: int, seed: int = 1) -> list[Run]:
    """Draw runs that fail where `unit` is missing."""
    dice = random.Random(seed)
    given = [
        {"value": dice.randint(1, 9)} | ({"unit": "km"} if dice.random() < 0.8 else {}) for _ in range(count)
    ]
    return [Run(one, "unit" in one, "a", "" if "unit" in one else "KeyError") for one in given]


def by_chance(count: int, seed: int = 1, share: float = 0.7) -> list[Run]:
    dice = random.Random(seed)
    return [Run({"n": dice.randint(0, 9)}, dice.random() < share, "a", "OSError") for _ in range(count)]


def ran(healkit: Healkit, name: str, calls: Iterable[dict[str, Any]]) -> VaultEntry:
    """Add a tool that converts, and run it with these."""
    entry = healkit.vault.add(name, CONVERT.replace("convert", name))
    for arguments in calls:
        healkit.execute(name, "default", arguments)
    return entry


@pytest.mark.slow
def test_where_arguments_decide_the_model_beats_the_base_rate() -> None:
    row = success_row("convert", by_arguments(200))
    assert row is not None
    assert row.on
    assert row.brier_used < row.brier_model + 0.02 < row.brier_base / 2
    assert row.ece <= 0.05


def test_where_chance_decides_the_model_is_off() -> None:
    row = success_row("fetch", by_chance(200))
    assert row is not None
    assert not row.on
    assert row.brier_used == pytest.approx(row.brier_base)


def test_each_prediction_is_made_before_its_run_counts() -> None:
    runs = by_arguments(120)
    turned = [*runs[:-1], Run(runs[-1].arguments, not runs[-1].succeeded, "a")]
    one, other = play(runs)[0], play(turned)[0]
    assert [(it.model, it.base, it.used) for it in one] == [(it.model, it.base, it.used) for it in other]


def test_a_tool_that_was_never_wrong_has_no_model() -> None:
    played, on = play([Run({"n": n}, True, "a") for n in range(60)])
    assert not on
    assert played[-1].used > 0.95


def test_features_are_words() -> None:
    found = features({"n": -3, "text": "", "items": [1, 2, 3], "flag": True, "x": None}, ["n", "unit"])
    wanted = {
        "`unit` missing",
        "`n` negative",
        "`n` = -3",
        "`n` from 2 to below 4",
        "`text` empty",
        "`flag` True",
    }
    assert wanted | {"`x` None", "`items` with a length from 2 to below 4"} <= set(found)
    assert features(None, ["n"]) == ["arguments cut"]


def test_a_warning_is_a_count_that_is_on_record_of_the_code_of_now(shared: Healkit) -> None:
    calls = [{"value": n, "unit": "km"} for n in range(8)] + [{"value": n} for n in range(5)]
    entry = ran(shared, "warned", calls)
    asked = shared.database, "warned"
    said = success.warning_of(*asked, {"value": 30}, entry.code_hash)
    assert said == "5 of the last 5 runs with `unit` missing failed: KeyError."
    assert success.warning_of(*asked, {"value": 30, "unit": "km"}, entry.code_hash) is None
    healed = entry.code.replace("more['unit']", "more.get('unit', 'km')")
    entry = shared.vault.patch("warned", healed, reason="default")
    assert success.warning_of(*asked, {"value": 30}, entry.code_hash) is None


def test_few_runs_chance_and_constant_failure_give_no_warning() -> None:
    for runs in (by_arguments(20)[:4], by_chance(100), by_chance(100, share=0.1)):
        assert warning(runs, {"n": 3, "value": 3}, "a") is None


def test_trials_and_refused_calls_of_other_kinds_say_nothing(shared: Healkit) -> None:
    ran(shared, "tried", [])
    row = shared.execute("tried", "default", {"value": 1, "unit": "km"})
    shared.try_code("tried", "def tried(value):\n    return 1 / 0\n", {"value": 1})
    assert row.log_id is not None
    shared.replay(row.log_id)
    shared.vault.add("typed", "def typed(n: int):\n    return n\n")
    with pytest.raises(Exception, match="typed"):
        shared.execute("typed", "default", {"n": "x"})
    assert [run.succeeded for run in success.read_runs(shared.database, "tried")] == [True]
    assert [run.succeeded for run in success.read_runs(shared.database, "typed")] == [False]


def test_the_report_has_a_row_for_each_tool_with_enough_runs(shared: Healkit) -> None:
    assert "No tool has enough runs yet" in str(success.success_report(shared.database))
    ran(shared, "convert", [{"value": n, "unit": "km"} if n % 3 else {"value": n} for n in range(32)])
    (row,) = found = success.success_report(shared.database)
    assert (row.tool, row.runs, row.on) == ("convert", 32, row.brier_used < row.brier_base)
    assert "convert" in str(found)
    assert "convert" in found._repr_html_()
    assert list(found.to_pandas()["tool"]) == ["convert"]


def test_the_report_of_an_empty_log_is_empty(database: Database) -> None:
    assert success.success_report(database) == ()
    assert success.read_runs(database, "convert") == []
