"""`hk.map`: one execution an input, and a map that goes on."""

from __future__ import annotations

import asyncio
import datetime
import json
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from healkit import Healkit
from healkit.core.runtime.background import Stop
from healkit.errors import ConfigError, ToolNotFound, UsageInvalid
from healkit.parts.maps import record
from healkit.parts.maps.record import folder_of
from healkit.parts.maps.report import MapProgress, MapReport

pytestmark = pytest.mark.requirement("SCALE-4")

INVERSE = "def inverse(n: int):\n    return 1 / n\n"


def statuses(report: MapReport) -> list[Any]:
    return list(report.to_pandas()["status"])


def stopped_after(healkit: Healkit, tool: str, inputs: Any, done: int, **options: Any) -> MapReport:
    """Map until so many inputs have ended."""
    stop = Stop()

    def look(progress: MapProgress) -> None:
        if progress.done >= done:
            stop.ask()

    with stop.heard():
        return healkit.map(tool, inputs, progress=look, **options)


def test_each_input_is_an_execution_on_record(healkit: Healkit) -> None:
    entry = healkit.vault.add("inverse", INVERSE)
    report = healkit.map("inverse", [{"n": n} for n in (1, 0, 2, 0)])
    assert (report.done, report.failed, report.total, report.ok) == (4, 2, 4, False)
    frame = report.to_pandas()
    assert list(frame["n"]) == [1, 0, 2, 0]
    assert list(frame["status"]) == ["SUCCESS", "FAILURE", "SUCCESS", "FAILURE"]
    assert frame["result"].tolist() == [1.0, None, 0.5, None]
    assert frame["error"].tolist() == ["", "ZeroDivisionError: division by zero"] * 2
    rows = [healkit.log.get(log_id) for log_id in frame["log_id"]]
    assert [row.arguments for row in rows if row] == [{"n": 1}, {"n": 0}, {"n": 2}, {"n": 0}]
    assert {(row.origin, row.revision, row.code_hash, row.isolation) for row in rows if row} == {
        ("map", 1, entry.code_hash, rows[0].isolation)  # type: ignore[union-attr]  # every row is there
    }
    (group,) = report.groups
    assert (group.count, group.ename) == (2, "ZeroDivisionError")
    last = healkit.last_error("inverse")
    assert last is not None
    assert last.failure is not None
    assert last.failure.frames[-1].lineno == 2
    assert "2 failed" in str(report)
    assert "division by zero" in str(report)
    assert "inverse" in report._repr_html_()


@pytest.mark.parametrize(
    "suffix", ["jsonl", "csv", "parquet", "list", "generator", "frame", "values", "rows"]
)
def test_inputs_come_in_many_forms(healkit: Healkit, tmp_path: Path, suffix: str) -> None:
    healkit.vault.add("inverse", INVERSE)
    frame = pd.DataFrame({"n": [1, 2, 4]}, index=["a", "b", "c"])
    file = tmp_path / f"rows.{suffix}"
    inputs: Any = file
    if suffix == "jsonl":
        frame.to_json(file, orient="records", lines=True)
    elif suffix == "csv":
        frame.to_csv(file, index=False)
    elif suffix == "parquet":
        frame.to_parquet(file, index=False)
    elif suffix == "list":
        inputs = [{"n": 1}, {"n": 2}, {"n": 4}]
    elif suffix == "generator":
        inputs = ({"n": n} for n in (1, 2, 4))
    elif suffix == "values":
        inputs = (1, 2, 4)
    elif suffix == "rows":
        ids = [healkit.execute("inverse", arguments={"n": n}).log_id for n in (1, 2, 4)]
        inputs = [healkit.log.get(log_id) for log_id in ids]
    else:
        inputs = frame
    report = healkit.map("inverse", inputs)
    results = report.to_pandas()
    assert results["n"].tolist() == [1, 2, 4]
    assert results["result"].tolist() == [1.0, 0.5, 0.25]
    if suffix == "frame":
        assert list(results.index) == ["a", "b", "c"]
        assert "status" not in frame


def test_inputs_that_cannot_be_read_are_named(healkit: Healkit, tmp_path: Path) -> None:
    healkit.vault.add("inverse", INVERSE)
    healkit.vault.add("add", "def add(a, b):\n    return a + b\n")
    (tmp_path / "bad.jsonl").write_text('{"n": 1}\n{"n": \n')
    for tool, inputs, words in (
        ("inverse", 3, "not a int"),
        ("inverse", b"abc", "not a bytes"),
        ("inverse", {"n": 1}, "not a dict"),
        ("inverse", tmp_path / "missing.csv", "No such file"),
        ("inverse", tmp_path / "rows.xlsx", ".jsonl"),
        ("inverse", tmp_path / "bad.jsonl", "line 2"),
        ("add", [1], "takes a, b"),
    ):
        with pytest.raises(UsageInvalid) as refused:
            healkit.map(tool, inputs, progress=False)
        assert words in f"{refused.value.message} {refused.value.hint}"
    with pytest.raises(ToolNotFound):
        healkit.map("inverze", [])
    assert healkit.map("inverse", []).to_pandas().empty


def test_arguments_that_do_not_fit_fail_alone(healkit: Healkit) -> None:
    healkit.vault.add("inverse", INVERSE)
    report = healkit.map("inverse", [{"n": 1}, {"n": "two"}, {"m": 1}, {"n": 4}])
    assert statuses(report) == ["SUCCESS", "FAILURE", "FAILURE", "SUCCESS"]
    assert [group.count for group in report.groups] == [2]


def test_values_come_back_as_they_are(healkit: Healkit) -> None:
    healkit.vault.add(
        "make",
        """
import datetime
import pandas as pd
def make(n: int):
    return [(1, 2), {3}, datetime.date(2026, 1, 2), "ü" * 50_000, pd.DataFrame({"a": [1, 2]}), float("nan"), None][n]
""",
    )
    results = healkit.map("make", range(7)).to_pandas()["result"].tolist()
    assert results[:4] == [(1, 2), {3}, datetime.date(2026, 1, 2), "ü" * 50_000]
    pd.testing.assert_frame_equal(results[4], pd.DataFrame({"a": [1, 2]}))
    assert np.isnan(results[5])
    assert results[6] is None


def test_a_column_of_the_inputs_keeps_its_name(healkit: Healkit) -> None:
    healkit.vault.add("echo", "def echo(status):\n    return status\n")
    frame = healkit.map("echo", [{"status": "open"}]).to_pandas()
    assert (frame["status"][0], frame["status_"][0], frame["result"][0]) == ("open", "SUCCESS", "open")


def test_a_stopped_map_goes_on_and_runs_nothing_twice(healkit: Healkit) -> None:
    healkit.vault.add("slow", "import time\ndef slow(n: int):\n    time.sleep(0.02)\n    return n\n")
    first = stopped_after(healkit, "slow", range(200), 20)
    assert first.stopped
    assert 20 <= first.done < 200
    assert first.run_id in first.resume_sentence
    again = healkit.map("slow", range(200), run_id=first.run_id)
    assert (again.done, again.failed, again.stopped) == (200, 0, False)
    assert again.earlier >= first.done
    assert again.to_pandas()["result"].tolist() == list(range(200))
    ended = list(healkit.log.query(tool="slow", status="SUCCESS", limit=1000).rows)
    assert sorted(row.arguments["n"] for row in ended) == list(range(200))
    once_more = healkit.map("slow", range(200), run_id=first.run_id)
    assert once_more.earlier == 200
    assert once_more.to_pandas()["result"].tolist() == list(range(200))


def test_a_map_goes_on_with_its_own_inputs_only(healkit: Healkit) -> None:
    healkit.vault.add("inverse", INVERSE)
    healkit.vault.add("other", INVERSE.replace("inverse", "other"))
    run_id = healkit.map("inverse", [1, 2, 3]).run_id
    for tool, inputs, words in (
        ("inverse", [1, 5, 3], "Input 1 is not the one"),
        ("inverse", [1, 2], "had more"),
        ("other", [1, 2, 3], "a map of 'inverse'"),
    ):
        with pytest.raises(UsageInvalid, match=words):
            healkit.map(tool, inputs, run_id=run_id)
    for wrong_id, words in (
        ("map-0123456789ab", "no map"),
        ("../map", "not the id"),
        ("map-1", "not the id"),
    ):
        with pytest.raises(UsageInvalid, match=words):
            healkit.map("inverse", [1], run_id=wrong_id)
    longer = healkit.map("inverse", [1, 2, 3, 4], run_id=run_id)
    assert (longer.earlier, longer.done) == (3, 4)


def test_an_input_that_failed_is_compared_too(healkit: Healkit) -> None:
    healkit.vault.add("inverse", INVERSE)
    run_id = healkit.map("inverse", [{"n": 0}, {"n": object()}, {"n": 2}]).run_id
    again = healkit.map("inverse", [{"n": 0}, {"n": object()}, {"n": 2}], run_id=run_id)
    assert (again.earlier, again.failed, again.done) == (2, 2, 3)  # what was refused is refused anew
    with pytest.raises(UsageInvalid, match="Input 0 is not the one"):
        healkit.map("inverse", [{"n": 4}, {"n": object()}, {"n": 2}], run_id=run_id)


def test_a_foreign_file_of_values_does_no_harm(healkit: Healkit, tmp_path: Path) -> None:
    healkit.vault.add("inverse", INVERSE)
    report = healkit.map("inverse", [1, 2, 4])
    (file,) = folder_of(healkit.database).iterdir()
    file.write_bytes(b'nonsense\n[1e3]\n[99999999999999,1]\n[-1,1]\n[0,{"@":["nothing"]}]\n[2,0.25]\n')
    frame = healkit.map("inverse", [1, 2, 4], run_id=report.run_id).to_pandas()
    assert frame["result"].tolist() == [None, None, 0.25]
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    file.unlink()
    file.symlink_to(precious)
    again = healkit.map("inverse", [1, 2, 4], run_id=report.run_id)
    assert again.earlier == 3
    assert precious.read_text() == "mine"


def test_sentences_name_the_persona(healkit: Healkit) -> None:
    healkit.vault.add("inverse", INVERSE, persona="teacher")
    report = healkit.map("inverse", [0], persona="teacher")
    assert f"persona='teacher', run_id={report.run_id!r}" in report.resume_sentence
    assert (
        "persona=&#x27;teacher&#x27;" in report._repr_html_() or "persona='teacher'" in report._repr_html_()
    )


def test_failures_are_run_again_with_new_code(healkit: Healkit) -> None:
    healkit.vault.add("inverse", INVERSE)
    healkit.vault.add_example("inverse", {"arguments": {"n": 0}, "result": None})
    report = healkit.map("inverse", [1, 0, 2])
    assert healkit.map("inverse", [1, 0, 2], run_id=report.run_id).failed == 1  # the same code
    healkit.vault.patch("inverse", "def inverse(n: int):\n    return 1 / n if n else None\n", reason="zero")
    again = healkit.map("inverse", [1, 0, 2], run_id=report.run_id)
    assert (again.failed, again.earlier, again.done) == (0, 2, 3)
    assert again.to_pandas()["result"].tolist() == [1.0, None, 0.5]


@pytest.mark.parametrize("page", [1, 2, 3, 4, 7])
def test_the_newest_row_of_an_input_counts_wherever_a_page_of_rows_ends(
    healkit: Healkit, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """A page that ended between two rows of an input hid the newer one: a result was missing, and the input ran again."""
    monkeypatch.setattr(record, "_PAGE", page)
    healkit.vault.add("half", "def half(n: int):\n    return n / none\n")
    run_id = healkit.map("half", range(5)).run_id
    healkit.map("half", range(5), run_id=run_id)
    healkit.vault.patch("half", "def half(n: int):\n    return n / 2\n")
    assert healkit.map("half", range(5), run_id=run_id).to_pandas()["result"].tolist() == [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
    ]
    again = healkit.map("half", range(5), run_id=run_id)
    assert (again.earlier, again.failed) == (5, 0)
    assert len(healkit.log.query(tool="half", limit=100).rows) == 10


def test_healing_starts_from_a_group(healkit: Healkit) -> None:
    healkit.vault.add("total", "def total(items):\n    return sum(item['price'] for item in items)\n")
    inputs = [{"items": [{"price": 2}]}, {"items": [{"prize": 2}]}, {"items": None}, {"items": None}]
    report = healkit.map("total", inputs)
    assert [group.count for group in report.groups] == [2, 1]
    healed = report.heal(report.groups[1], advisors=["rules"], dry_run=True)
    assert "has no key `'price'`" in healed.diagnosis
    with pytest.raises(UsageInvalid):
        healkit.map("total", inputs[:1]).heal()


@pytest.fixture
def heard(healkit: Healkit) -> Iterator[list[int]]:
    """Numbers that tools have told the host."""
    numbers: list[int] = []

    def hear(n: int) -> int:
        numbers.append(n)
        return n

    healkit.provide(hear)
    return numbers


def test_a_tool_that_calls_has_workers_of_its_own(healkit: Healkit, heard: list[int]) -> None:
    healkit.vault.add("say", "def say(n: int):\n    return mcp.host.hear(n=n)\n")
    report = healkit.map("say", range(6))
    assert report.ok
    assert sorted(heard) == list(range(6))
    assert report.to_pandas()["result"].tolist() == list(range(6))
    last = healkit.executions(tool="say", limit=1)[0]
    calls = healkit.execution(last.log_id)
    assert calls is not None
    assert [call.tool for call in calls.calls] == ["hear"]
    with ThreadPoolExecutor(1) as executor, pytest.raises(ConfigError, match="only on this machine"):
        healkit.map("say", [1], executor=executor)


def test_what_may_have_acted_is_not_run_again(healkit: Healkit, heard: list[int]) -> None:
    healkit.vault.add("say", "import time\ndef say(n: int):\n    mcp.host.hear(n=n)\n    time.sleep(0.5)\n")
    first = stopped_after(healkit, "say", range(6), 1, parallel=2)
    again = healkit.map("say", range(6), run_id=first.run_id, parallel=2)
    assert sorted(heard) == sorted(set(heard))
    assert again.failed
    assert again.done == 6
    assert {group.ename for group in again.groups} == {"CancelledError"}


def test_contents_that_are_kept_off_the_record_stay_off(healkit: Healkit) -> None:
    healkit.vault.add("secret", "def secret(n: int):\n    return 'psst' * n\n", log=False)
    report = healkit.map("secret", [1, 2])
    assert report.to_pandas()["result"].tolist() == ["psst", "psstpsst"]
    assert not list(folder_of(healkit.database).glob("*"))
    assert "psst" not in json.dumps([row.result_summary for row in healkit.log.query(tool="secret").rows])
    again = healkit.map("secret", [1, 2], run_id=report.run_id)
    assert again.to_pandas()["error"].tolist() == ["its result is not on this machine"] * 2


@pytest.mark.parametrize(
    "kind", [ThreadPoolExecutor, pytest.param(ProcessPoolExecutor, marks=pytest.mark.slow)]
)
@pytest.mark.requirement("SCALE-2")
def test_an_executor_does_the_same(healkit: Healkit, kind: type[Executor]) -> None:
    healkit.vault.add("inverse", INVERSE)
    with kind(2) as executor:  # type: ignore[call-arg]  # the base class takes no number
        report = healkit.map("inverse", range(100), executor=executor)
    assert (report.done, report.failed) == (100, 1)
    assert report.to_pandas()["result"].tolist()[1:] == [1 / n for n in range(1, 100)]


def test_a_cancelled_map_can_go_on(healkit: Healkit) -> None:
    healkit.vault.add("slow", "import time\ndef slow(n: int):\n    time.sleep(0.05)\n    return n\n")
    begun, ids = threading.Event(), set[str]()

    def look(progress: MapProgress) -> None:
        ids.add(progress.run_id)
        begun.set()

    async def cancelled() -> None:
        task = asyncio.create_task(healkit.amap("slow", range(100), progress=look))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    (run_id,) = ids
    assert not healkit.log.running()
    report = asyncio.run(healkit.amap("slow", range(100), run_id=run_id, progress=False))
    assert report.done == 100
    assert report.ok


def test_what_a_generator_raises_ends_the_map(healkit: Healkit) -> None:
    healkit.vault.add("inverse", INVERSE)

    def inputs() -> Iterator[int]:
        yield 1
        raise OSError("the line is down")

    with pytest.raises(OSError, match="the line is down"):
        healkit.map("inverse", inputs(), progress=False)
    assert not healkit.log.running()


def test_a_generator_may_run_tools_itself(healkit: Healkit) -> None:
    healkit.vault.add("inverse", INVERSE)
    inputs = (healkit.execute_tool("inverse", arguments={"n": n}) * n for n in range(1, 4))
    assert healkit.map("inverse", inputs).to_pandas()["result"].tolist() == [1.0, 1.0, 1.0]


def test_progress_tells_rate_and_time_left() -> None:
    progress = MapProgress("slugify", "map-1", 500, 2000, 3, 100, 4.0)
    assert (progress.rate, progress.left_s) == (100.0, 15.0)
    assert str(progress) == "slugify: 500 of 2,000 (25%), 3 failed, 100 a second, 0:15 left"
    assert str(MapProgress("slugify", "map-1", 0, None, 0, 0, 4.0)) == "slugify: 0, 0 a second"


def test_values_go_when_the_rows_are_pruned(healkit: Healkit) -> None:
    healkit.vault.add("inverse", INVERSE)
    healkit.map("inverse", [1, 2])
    assert len(list(folder_of(healkit.database).iterdir())) == 1
    healkit.execute("inverse", arguments={"n": 1})  # the newest row stays in any case
    healkit.log.prune(keep=0)
    assert not list(folder_of(healkit.database).iterdir())


def test_a_line_that_was_cut_by_a_kill_counts_for_nothing(healkit: Healkit) -> None:
    healkit.vault.add("inverse", INVERSE)
    report = healkit.map("inverse", [1, 2, 4])
    (file,) = folder_of(healkit.database).iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    frame = healkit.map("inverse", [1, 2, 4], run_id=report.run_id).to_pandas()
    assert sorted(frame["error"]) == ["", "", "its result is not on this machine"]


def test_a_map_of_an_untrusted_database_has_no_grants(tmp_path: Path, healkit: Healkit) -> None:
    (tmp_path / "a.txt").write_text("a")
    code = "def read_text(path: str):\n    return open(path).read()\n"
    healkit.vault.add("read_text", code, grants={"read": [str(tmp_path / "a.txt")]})
    inputs = [str(tmp_path / "a.txt")]
    assert healkit.map("read_text", inputs).ok
    assert healkit.path is not None
    other = tmp_path / "elsewhere"
    other.mkdir()
    with (
        closing(sqlite3.connect(healkit.path)) as source,
        closing(sqlite3.connect(other / "healkit.db")) as copy,
    ):
        source.backup(copy)
    with Healkit(other / "healkit.db") as copied:
        report = copied.map("read_text", inputs)
        assert [group.ename for group in report.groups] == ["FileNotFoundError"]
        assert not folder_of(copied.database).exists()


def test_wrong_options_are_named(healkit: Healkit) -> None:
    healkit.vault.add("inverse", INVERSE)
    with pytest.raises(UsageInvalid, match="retries"):
        healkit.map("inverse", [1], retries="two")  # type: ignore[arg-type]  # refused
    for parallel in (0, -1, 1.5):
        with pytest.raises(ConfigError, match="parallel"):
            healkit.map("inverse", [], parallel=parallel)  # type: ignore[arg-type]  # refused
