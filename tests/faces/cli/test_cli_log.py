"""`healkit log`: listing, summing up, moving and pruning."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cli_samples import Done

from healkit import Healkit
from healkit.core.contracts.execution import Finished, Started, new_trace_id, utc_now
from healkit.core.contracts.failure import Failure, Frame
from healkit.core.host import host_identity
from healkit.core.pysource.tracebacks import fingerprint
from healkit.core.store.database import Database
from healkit.core.store.log_writer import LogWriter

DAY = timedelta(days=1)
Cli = Callable[..., Done]


def write(
    writer: LogWriter,
    when: datetime,
    revision: int,
    message: str = "",
    tool: str = "parse",
    run: str | None = None,
    origin: str = "python",
) -> None:
    begun = Started(
        new_trace_id(), when, tool, "default", '{"text":"x"}', origin, host_identity(), when, revision=revision,
        isolation="namespaces", run_id=run,
    )  # fmt: skip
    failure = None
    if message:
        frames = [Frame(f"<{tool}@{revision}>", 2, tool, "return int(text)", in_tool=True)]
        failure = Failure(
            "TOOL_EXCEPTION", "ValueError", message, f"Traceback …\nValueError: {message}", frames
        )
    writer.insert_finished(
        begun, Finished(begun.trace_id, when, 12.5, "5", failure, fingerprint(failure) if failure else None)
    )


@pytest.fixture
def log(cli: Cli, tmp_path: Path) -> Cli:
    """`healkit log WORDS…` on eight executions."""
    now = utc_now()
    database = Database(tmp_path / "healkit.db")
    with contextlib.closing(LogWriter(database)) as writer:
        write(writer, now - 100 * DAY, 1, "invalid literal: 'a'")
        write(writer, now - 50 * DAY, 1, "invalid literal: 'bb'")
        write(writer, now - 40 * DAY, 2, "other words")
        for days in (30, 20, 10):
            write(writer, now - days * DAY, 3, run="run-7")
        write(writer, now - 5 * DAY, 1, tool="render")
        write(writer, now, 1, tool="render")
    database.close()
    return lambda *words: cli("log", *words)


@pytest.mark.requirement("LOG-10")
def test_the_list_is_filtered_and_paged(log: Cli) -> None:
    def ids(*words: str) -> list[int]:
        done = log("--json", *words)
        assert done.returncode == 0, done.stderr
        return [row["log_id"] for row in json.loads(done.stdout)]

    assert ids() == [8, 7, 6, 5, 4, 3, 2, 1]
    assert ids("--limit", "3", "--before", "6") == [5, 4, 3]
    assert ids("--limit", "2", "--after", "3") == [5, 4]
    assert ids("--text", "literal") == [2, 1]
    assert ids("--text", '"other words"', "--status", "failure") == [3]
    assert ids("--run", "run-7") == [6, 5, 4]
    assert ids("--since", "60d", "--until", "25d") == [4, 3, 2]
    shown = log("--limit", "2")
    assert shown.stderr == "There may be more: add --before 7\n"
    for words, said in (
        (("--before", "1", "--after", "2"), "cannot both"),
        (("--status", "BROKEN"), "'BROKEN'"),
        (("--tool", "x", "prune"), "Move --tool"),
        (("--group", "--text", "x"), "--text cannot be combined with --group"),
        (("--group", "--summary"), "cannot both"),
        (("--summary", "--by", "week"), "'week'"),
    ):
        refused = log(*words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert said in refused.stderr


@pytest.mark.requirement("LOG-11")
def test_failures_are_shown_in_groups(log: Cli) -> None:
    shown = log("--group").stdout.splitlines()
    assert len(shown) == 3
    assert shown[1].startswith("1         parse")
    assert "v2" in shown[1]
    assert shown[2].startswith("2         parse")
    assert "ValueError: invalid literal: 'bb'" in shown[2]
    other, literal = json.loads(log("--group", "--json").stdout)
    assert (literal["count"], literal["first_revision"], literal["cured_by"]) == (2, 1, 3)
    assert [g["fingerprint"] for g in json.loads(log("--group", "--json", "--since", "45d").stdout)] == [
        other["fingerprint"]
    ]
    assert [
        row["log_id"] for row in json.loads(log("--json", "--fingerprint", literal["fingerprint"]).stdout)
    ] == [2, 1]
    assert log("--group", "--tool", "render").stdout == "No failures match.\n"


@pytest.mark.requirement("LOG-10")
def test_tools_are_summed_up(log: Cli) -> None:
    parse, render = json.loads(log("--summary", "--json").stdout)
    assert (parse["runs"], parse["failures"], parse["mean_ms"], parse["p95_ms"]) == (6, 3, 12.5, 20.0)
    assert render["failures"] == 0
    assert log("--summary", "--by", "revision", "--tool", "parse").stdout.splitlines()[1:] == [
        "parse  v1        2     2       100.0%  12 ms  20 ms        20 ms",
        "parse  v2        1     1       100.0%  12 ms  20 ms        20 ms",
        "parse  v3        3     0       0.0%    12 ms  20 ms        20 ms",
    ]
    assert log("--summary", "--tool", "none").stdout == "No executions match.\n"


@pytest.mark.requirement("LOG-12")
def test_old_rows_are_archived_and_come_back(log: Cli, cli: Cli, tmp_path: Path) -> None:
    assert log("prune").returncode == 2
    done = json.loads(log("prune", "--older-than", "45d", "--archive", "archive", "--json").stdout)
    assert done["deleted"] == 2
    archive = tmp_path / done["archives"][0]
    assert archive.stat().st_mode & 0o077 == 0
    assert len(json.loads(log("--json").stdout)) == 6
    assert log("import", str(archive)).stdout == f"2 executions read from {archive}, 2 of them new\n"
    assert log("import", str(archive)).stdout == f"2 executions read from {archive}, 0 of them new\n"
    assert (
        log("prune", "--keep", "1").stdout == "6 executions deleted\n"
    )  # the newest id, an old row, stays too
    assert log("prune", "--older-than", "soon").returncode == 2
    assert log("prune", "--keep", "1", "--format", "csv").returncode == 2


@pytest.mark.requirement("LOG-12")
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_an_export_goes_into_another_database(log: Cli, cli: Cli, tmp_path: Path, suffix: str) -> None:
    assert log("export", f"x.{suffix}", "--tool", "parse").stdout == f"6 executions written to x.{suffix}\n"
    again = log("export", f"x.{suffix}")
    assert (again.returncode, "already exists" in again.stderr) == (2, True)
    assert json.loads(log("export", f"x.{suffix}", "--force", "--json").stdout) == {
        "file": f"x.{suffix}",
        "executions": 8,
    }
    other = ("--db", "other.db", "--json")
    assert json.loads(log("import", f"x.{suffix}", *other).stdout) == {
        "file": f"x.{suffix}",
        "executions": 8,
        "new": 8,
    }
    assert [row["run_id"] for row in json.loads(log("--run", "run-7", *other).stdout)] == ["run-7"] * 3
    bad = log("import", "none.jsonl")
    assert (bad.returncode, "'none.jsonl'" in bad.stderr) == (2, True)


@pytest.mark.requirement("LOG-12")
def test_a_tools_contents_are_kept_off_the_record_by_a_switch(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def f(n): return n")
    cli("vault", "add", "f", "f.py")
    off = cli("vault", "switch", "f", "--no-log")
    assert off.stdout == "f v1: its contents are kept off the record; has no side effects\n"
    on = cli("vault", "switch", "f", "--log", "--side-effects", "--json")
    assert json.loads(on.stdout)["flags"] == {
        "side_effects": True,
        "derived": ["input_schema", "description"],
        "log": True,
    }


@pytest.mark.requirement("LOG-10")
def test_a_healings_trials_are_counted_and_listed_when_asked_for(log: Cli, tmp_path: Path) -> None:
    database = Database(tmp_path / "healkit.db")
    with contextlib.closing(LogWriter(database)) as writer:
        for origin, message in (("trial", ""), ("trial", "no cure"), ("search", "")):
            write(writer, utc_now() + DAY, 1, message, origin=origin)
    database.close()
    listed, asked = log(), log("--trials", "--limit", "4")
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == [*"87654321"]
    assert (
        listed.stderr
        == "3 trial runs, for example of a healing, are hidden; healkit log --trials lists them too.\n"
    )
    assert [line.split()[0] for line in asked.stdout.splitlines()[1:]] == ["11", "10", "9", "8"]
    assert "parse v1 (search)" in asked.stdout
    assert "hidden" not in asked.stderr
    assert "1 trial run, for example of a healing, is hidden" in log("--json", "--text", "cure").stderr
    assert "--trials cannot be combined with --group" in log("--group", "--trials").stderr


@pytest.mark.slow
@pytest.mark.requirement("LOG-2", "LOG-8")
def test_refused_calls_of_first_tries_are_on_record_and_counted_apart(cli: Cli, tmp_path: Path) -> None:
    """D8: after two failures of code, `status` said 5, and `errors` listed the typing errors too."""
    with Healkit(tmp_path / "healkit.db") as healkit:
        healkit.vault.add("ratio", "def ratio(wins: int, games: int):\n    return [wins / games][games]\n")
    for words in (
        "ratoi wins=3",
        "ratio wins=3",
        "ratio wins=many games=2",
        "ratio wins=3 games=0",
        "ratio wins=3 games=2",
    ):
        assert cli("run", *words.split()).returncode != 0
    said = "3 refused calls are not listed: healkit log --status refused"
    found = json.loads(cli("status", "--json").stdout)
    assert (found["executions"], found["failures"], found["refused"]) == (5, 2, 3)
    for words in (("errors",), ("log", "--group")):
        assert said in cli(*words).stderr
        assert len(json.loads(cli(*words, "--json").stdout)) == 2
    for word, rows in (
        ("refused", 3),
        ("✗ refused", 3),
        ("failed", 5),
        ("✗ failed", 5),
        ("FAILURE", 5),
        ("ok", 0),
    ):
        assert len(json.loads(cli("log", "--status", word, "--json").stdout)) == rows, word
    listed = cli("log").stdout
    assert (listed.count("✗ refused"), listed.count("✗ FAILURE")) == (3, 2)
    (summed,) = [
        row for row in json.loads(cli("log", "--summary", "--json").stdout) if row["tool_name"] == "ratio"
    ]
    assert (summed["runs"], summed["failures"], summed["refused"]) == (4, 2, 2)
    cli("run", "ratio", "--args", "{}")
    assert "ARGUMENTS_INVALID" in cli("errors", "--last").stdout
