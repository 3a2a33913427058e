"""Search of the log: filters, full text, trials left out."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from store_samples import asked_of, failed, moment, recorded, started, succeeded

from healkit import Healkit
from healkit.core.contracts.execution import FILTER_NAMES, Filters, Finished, utc_now
from healkit.core.contracts.failure import Failure
from healkit.core.runtime.execution import NewestRows
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.vault import Vault
from healkit.errors import UsageInvalid
from healkit.faces.commands.parsing import read_filters

LOG_10 = pytest.mark.requirement("LOG-10")


TRACEBACK = """Traceback (most recent call last):
  File "<load_rows@3>", line 2, in load_rows
    return open("/data/in/café-2026.csv").read()
FileNotFoundError: [Errno 2] No such file or directory: '/data/in/café-2026.csv' it's my_func KeyError: 'x'"""


def fail(writer: LogWriter, traceback: str, tool: str = "fibonacci", **changes: Any) -> int:
    """Record a failure with that traceback; return its row's id."""
    begun = started(tool, **changes)
    failure = Failure("TOOL_EXCEPTION", "Error", "no", traceback)
    return writer.insert_finished(
        begun, Finished(begun.trace_id, utc_now(), 1.0, failure=failure, fingerprint="v1:a1")
    )


#: SQLite's index holds words without their accents.
WITHOUT_ACCENTS = "cafe"


FOUND = (
    "FileNotFoundError", "filenotfound", "FILENOT", "load_rows", "rows", "/data/in/café-2026.csv", "in/caf", "cafe",
    '"such file"', '"No such file or directory"', "KeyError: 'x'", "[Errno 2]", "directory such", "it's", "'x'",
    "2026.csv", '"data/in"', "line 2", '"such file "directory', '"such file', "<load_rows@3>",
    "my_func", "func", "such & file | !x", "-> such", "most*", "^Traceback", "such:file", "{traceback}", "such) file(",
)  # fmt: skip


NOT_FOUND = (
    "Division", "otFoundError", "such directory2", '"file such"', '"No suc"', "in/data", "such OR nothing_at_all", "'y'", "file AND such", "NOT", '"such file directory"', "\x00 \ud800",
    "NEAR(such file)", "facts:fibonacci", "fibonacci", "su", "mo",
)  # fmt: skip


@LOG_10
def test_typed_text_finds_the_traceback(database: Database, writer: LogWriter) -> None:
    wanted = fail(writer, TRACEBACK)
    fail(writer, "ZeroDivisionError: nothing alike")
    for typed in FOUND:
        found = typed != WITHOUT_ACCENTS or database.dialect_name == "sqlite"
        assert [row.id for row in Log(database).query(text=typed)] == ([wanted] if found else []), typed


@LOG_10
def test_missing_text_is_not_found(database: Database, writer: LogWriter) -> None:
    fail(writer, TRACEBACK)
    for typed in NOT_FOUND:
        assert len(Log(database).query(text=typed)) == 0, typed


@LOG_10
def test_punctuation_alone_is_matched_literally(database: Database, writer: LogWriter) -> None:
    wanted = fail(writer, "x => y")
    fail(writer, "x = y")
    assert [row.id for row in Log(database).query(text="=>")] == [wanted]
    assert len(Log(database).query(text="%")) == 0
    assert len(Log(database).query(text="")) == 2


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    """Make a log with one failure."""
    database = Database(tmp_path_factory.mktemp("searched") / "healkit.db")
    with contextlib.closing(LogWriter(database)) as writer:
        fail(writer, TRACEBACK)
    yield Log(database)
    database.close()


@pytest.mark.slow
@LOG_10
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text() | st.text("ab \"*^(){}:-+.,'\x00\ud800 ANDORT", max_size=12), st.text(max_size=5) | st.none()
)
def test_no_text_or_name_raises(searched: Log, typed: str, tool: str | None) -> None:
    searched.query(text=typed, tool=None if tool is None else tool.encode(errors="replace").decode())


@LOG_10
@pytest.mark.requirement("SCALE-1")
def test_matches_are_paged_in_both_directions(database: Database, writer: LogWriter) -> None:
    base = moment("2026-01-01T12:00:00+00:00")
    times = [3, 1, 2, 5, 4, 5, 1, 9, 8, 7]  # rows that waited in the spool have late ids and early times
    for index, seconds in enumerate(times):
        fail(
            writer,
            f"ValueError: common {'odd' if index % 2 else 'even'}",
            tool="alpha_one" if index < 5 else "alpha_one_two",
            persona="teacher" if index % 3 == 0 else "default",
            timestamp=base + timedelta(seconds=seconds),
            run_id="run-1" if index > 7 else None,
        )
    log = Log(database)
    everything: list[dict[str, Any]] = [
        {}, {"tool": "alpha_one"}, {"persona": "teacher"},
        {"tool": "alpha_one_two", "persona": "default"},
        {"run": "run-1"}, {"fingerprint": "v1:a1"}, {"status": "FAILURE"},
        {"since": base + timedelta(seconds=2), "until": base + timedelta(seconds=8)},
        {"since": base + timedelta(seconds=5, microseconds=1)},
    ]  # fmt: skip
    for filters in everything:
        plain = [row.id for row in log.query(**filters)]
        assert [row.id for row in log.query(text="common", **filters)] == plain
        assert pages(log, 2, text="common", **filters) == plain
        assert pages(log, 3, **filters) == plain
    assert log.query(text="common", status="SUCCESS").rows == []


def pages(log: Log, limit: int, **filters: Any) -> list[int | None]:
    """Return all ids page by page from the newest; check that paging back gives the same."""
    page = log.query(limit=limit, **filters)
    seen = [row.id for row in page]
    assert page.next_after_id is None
    last = page
    while last.next_before_id is not None:
        last = log.query(limit=limit, before_id=last.next_before_id, **filters)
        seen += [row.id for row in last]
    back = [row.id for row in last]
    while last.next_after_id is not None:
        last = log.query(limit=limit, after_id=last.next_after_id, **filters)
        back = [row.id for row in last] + back
    assert back == seen
    return seen


@LOG_10
def test_paging_continues_after_a_deleted_row(database: Database, writer: LogWriter) -> None:
    ids = [fail(writer, "ValueError: common") for _ in range(5)]
    with database.write() as session:
        session.execute(text("DELETE FROM executionlog WHERE id = :id"), {"id": ids[2]})
    log = Log(database)
    for filters in ({}, {"text": "common"}):
        assert [row.id for row in log.query(before_id=ids[2], **filters)] == [ids[1], ids[0]]
        assert [row.id for row in log.query(after_id=ids[2], **filters)] == [ids[4], ids[3]]
    with pytest.raises(ValueError, match="both"):
        log.query(before_id=1, after_id=2)


@LOG_10
def test_the_full_text_index_follows_every_change_of_a_row(database: Database, writer: LogWriter) -> None:
    log = Log(database)
    begun = started()
    writer.begin(begun)
    assert len(log.query(text="ZeroDivisionError")) == 0
    writer.finish(failed(begun))
    writer.finish(failed(begun))  # replayed
    assert len(log.query(text="ZeroDivisionError")) == 1
    writer.finish(failed(begun, ename="OverflowError"))
    assert len(log.query(text="ZeroDivisionError")) == 0
    assert len(log.query(text="OverflowError")) == 1
    writer.finish(succeeded(begun))
    assert len(log.query(text="OverflowError")) == 0
    writer.finish(failed(begun))
    with database.write() as session:
        session.execute(text("DELETE FROM executionlog"))
    assert len(log.query(text="OverflowError")) == len(log.query(text="ZeroDivisionError")) == 0


@LOG_10
def test_sqlites_index_keeps_nothing_of_a_deleted_row(
    sqlite_database: Database, sqlite_writer: LogWriter
) -> None:
    recorded(sqlite_writer, failed)
    with sqlite_database.write() as session:
        session.execute(text("DELETE FROM executionlog"))
        assert session.execute(text("SELECT count(*) FROM executionlog_fts_rows")).scalar() == 0
        left = session.execute(
            text("SELECT rowid FROM executionlog_fts WHERE executionlog_fts MATCH 'traceback : r*'")
        )
        assert left.all() == []


@LOG_10
def test_rows_of_any_year_are_found_by_time(database: Database, writer: LogWriter) -> None:
    log, years = (
        Log(database),
        ("1965-05-05T05:05:05.000500", "1970-01-01T00:00:00", "2105-01-01T00:00:00.999999"),
    )
    rows = {
        moment(f"{when}+00:00"): fail(writer, "common", timestamp=moment(f"{when}+00:00")) for when in years
    }
    for at, wanted in rows.items():
        found = log.query(text="common", since=at, until=at + timedelta(microseconds=1))
        assert [row.id for row in found] == [wanted]
    assert pages(log, 1, text="common") == list(reversed(rows.values()))


@LOG_10
def test_common_words_are_streamed_from_the_index_without_a_sort(
    sqlite_database: Database, sqlite_writer: LogWriter
) -> None:
    fail(sqlite_writer, TRACEBACK)
    filters = {
        "tool": "fibonacci", "persona": "teacher", "fingerprint": "v1:x", "run": "r", "status": "FAILURE",
    }  # fmt: skip
    log = Log(sqlite_database)
    asked = asked_of(sqlite_database, lambda: log.query(text="such file", since="2026-01-01", **filters))
    plan = next(plan for sql, _, plan in asked if "ORDER BY executionlog_fts" in sql)
    assert "SCAN executionlog_fts VIRTUAL TABLE" in plan[0]
    assert ["PRIMARY KEY" in step for step in plan[1:]] == [True, True]


def many_failures(database: Database, count: int, words: int) -> None:
    """Insert failures whose tracebacks hold so many different words with one beginning, in one statement."""
    columns = "timestamp, tool_name, persona, status, error_traceback, trace_id, origin, last_output"
    made = (
        f"INSERT INTO executionlog ({columns}) "
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
        "SELECT CAST('2026-01-02 03:04:05.000000' AS {time}), CASE WHEN i < 10 THEN 'rare' ELSE 'busy' END,"
        f" 'default', 'FAILURE', 'word' || (i % {words}) || ' => same' || (i % 5), CAST(i AS text), 'python', '' FROM n"
    )
    time = "text" if database.dialect_name == "sqlite" else "timestamp"
    with database.write() as session:
        session.execute(text(made.replace("{time}", time)))


@LOG_10
def test_a_search_that_no_index_answers_is_refused_with_its_reason(database: Database) -> None:
    """R9: what many rows would have to be read for is refused; a word that is nowhere was too, as one of many words."""
    log = Log(database)
    many_failures(database, 2_000, 500)
    assert len(log.query(text="wo*", limit=3000)) == len(log.query(text="=>", limit=3000)) == 2_000
    with database.write() as session:
        session.execute(text("DELETE FROM executionlog"))
    many_failures(database, 21_000, 5_000)
    assert len(log.query(text="sam*", limit=30)) == len(log.query(text="SAME", limit=30)) == 30
    assert len(log.query(text="word4999*")) == 4
    assert len(log.query(text="same4 word499*", limit=100)) == 13  # those of 499, 4994 and 4999
    if database.dialect_name == "sqlite":
        with pytest.raises(UsageInvalid, match=r"many words begin with 'wo'") as wide:
            log.query(text="wo*")
        assert "Type more" in wide.value.hint
    assert len(log.query(text="nothing*")) == len(log.query(text='nothing "same1"')) == 0
    with pytest.raises(UsageInvalid, match="no letter or digit") as bare:
        log.query(text="=>")
    assert "tool" in bare.value.hint
    assert len(log.query(text="=>", tool="rare")) == 9
    assert len(log.query(text="=>", since="2026-02-01")) == 0


@pytest.mark.parametrize("method", [Log.query, Log.export, Healkit.executions])
def test_each_filter_is_shown_in_the_signature(method) -> None:
    assert set(FILTER_NAMES) <= set(inspect.signature(method).parameters)
    assert "filters" not in inspect.signature(method).parameters


def test_filters_are_given_by_name_or_together_and_refused_where_nothing_counts_by_them(
    database: Database, writer: LogWriter
) -> None:
    for tool in ("fibonacci", "share"):
        recorded(writer, tool=tool)
    log, both = Log(database), Filters(status="FAILURE", tool="share")
    assert [row.tool_name for row in log.query(filters=both)] == ["share"]
    assert [row.tool_name for row in log.query(filters=both, tool="fibonacci")] == ["fibonacci"]
    assert len(log.query(filters=both, tool=None)) == 2
    assert [group.tool_name for group in log.groups(tool="share")] == ["share"]
    with pytest.raises(TypeError, match="'run'"):
        log.groups(run="r1")
    with pytest.raises(TypeError, match="takes no filter 'run', only status"):
        log.groups(filters=Filters(run="r1"))
    with pytest.raises(TypeError, match="takes no filter 'fingerprint'"):
        log.summary(filters=Filters(fingerprint="v1:0"))


def test_typed_filters_are_read_and_a_forms_until_includes_its_day() -> None:
    typed = {
        "status": " failure ", "tool": "", "persona": None, "since": "2026-01-01T10:00+00:00", "limit": 5,
    }  # fmt: skip
    assert read_filters(typed) == Filters("FAILURE", since=datetime(2026, 1, 1, 10, tzinfo=UTC), tried=False)
    assert read_filters({"tried": True}) == Filters()
    assert read_filters({"until": "2026-01-31"}, whole_days=True).until == date(2026, 2, 1)
    assert read_filters({"until": "2026-01-31"}).until == datetime(2026, 1, 31).astimezone(UTC)


TRIED = ["trial", "search"]


def at(second: int) -> datetime:
    return datetime(2026, 1, 2, 3, 4, second, tzinfo=UTC)


def try_out(writer: LogWriter, origin: str, second: int, *, well: bool = False) -> None:
    """Write a row as a trial or a search does."""
    begun = started(timestamp=at(second), origin=origin, revision=None)
    ended = succeeded(begun) if well else failed(begun)
    writer.insert_finished(
        begun, Finished(ended.trace_id, ended.finished_at, 3.0, ended.result_summary, ended.failure)
    )


@pytest.mark.parametrize("origin", TRIED)
def test_tried_code_counts_in_no_report_of_a_tool(database: Database, writer: LogWriter, origin: str) -> None:
    vault, log = Vault(database), Log(database)
    entry = vault.add("fibonacci", "def fibonacci(n): return n")
    for second in range(5):
        try_out(writer, origin, second)
    assert log.last_error() is None
    assert log.last_error("fibonacci", "default") is None
    assert log.tools_with_errors() == []
    assert len(log.groups()) == 0
    assert len(log.summary()) == 0
    assert vault.blame("fibonacci").fingerprint in {None, ""}

    begun = started(timestamp=at(10))
    writer.insert_finished(begun, failed(begun))
    for second in range(20, 25):
        try_out(writer, origin, second, well=second % 2 == 0)
    found = log.last_error("fibonacci")
    assert found.trace_id == begun.trace_id
    assert [group.count for group in log.groups()] == [1]
    assert [(s.runs, s.failures) for s in log.summary()] == [(1, 1)]
    (revision,) = vault.history("fibonacci")
    assert (revision.number, revision.runs, revision.failures) == (entry.revision, 1, 1)
    assert vault.blame("fibonacci").count == 1
    assert vault.blame("fibonacci").last_cured_by is None


@pytest.mark.parametrize("origin", TRIED)
@pytest.mark.parametrize("at_once", [False, True])
def test_a_trial_that_ends_like_an_execution_is_in_no_group(
    database: Database, writer: LogWriter, origin: str, at_once: bool
) -> None:
    """R9: a healing's trial came with its failure's fingerprint; the group counted it, and never was cured again."""
    own, tried = started(), started(origin=origin, revision=None)
    writer.insert_finished(own, failed(own))
    if at_once:
        writer.insert_finished(tried, failed(tried))
    else:
        writer.begin(tried)
        writer.finish(failed(tried))
    (group,) = Log(database).groups()
    assert (group.count, group.last_revision) == (1, 1)


def test_pages_without_trials_count_each_of_them_once(database: Database, writer: LogWriter) -> None:
    log = Log(database)
    own = []
    for second in range(12):  # from the oldest: two trials, then a run of the tool's own, four times
        if second % 3 == 2:
            begun = started(timestamp=at(second))
            own.append(writer.insert_finished(begun, failed(begun)))
        else:
            try_out(writer, TRIED[second % 3], second, well=True)
    try_out(writer, "trial", 20)
    first = log.query(tried=False, limit=2)
    assert [row.origin for row in first] == ["python", "python"]
    second = log.query(tried=False, limit=2, before_id=first.next_before_id)
    assert second.next_before_id is None
    assert (first.left_out, second.left_out) == (3, 6)  # the newest of all, and two below each but the last
    back = log.query(tried=False, limit=2, after_id=second.next_after_id)
    assert [row.id for row in back] == [row.id for row in first]
    assert log.query(limit=2).left_out == 0


def test_the_newest_page_is_the_first_page_of_the_log(database: Database, writer: LogWriter) -> None:
    log, newest = Log(database), NewestRows(database, lambda: None)
    assert newest.page(50) == ([], 0)
    for second in range(12):
        if second % 3:
            try_out(writer, TRIED[second % 3 - 1], second, well=True)
        else:
            recorded(writer, failed if second % 2 else succeeded, timestamp=at(second))
    for limit in (-1, 1, 3, 4, 5, 50):
        page = log.query(tried=False, limit=limit)
        rows, left_out = newest.page(limit)
        assert [vars(row) for row in rows] == [row.model_dump() for row in page]
        assert left_out == page.left_out


LEFT_OUT: list[tuple[dict[str, Any], int]] = [
    ({}, 6), ({"status": "FAILURE"}, 2), ({"tool": "fibonacci"}, 6),
    ({"tool": "fibonacci", "status": "SUCCESS"}, 4),
    ({"tool": "other"}, 0), ({"persona": "teacher"}, 0),
    ({"text": "ZeroDivisionError"}, 2),
    ({"text": "=>"}, 0),
    ({"since": "2026-01-02T03:04:03Z"}, 4),
    ({"until": "2026-01-02T03:04:03Z"}, 2),
    ({"run": "r1"}, 0), ({"origin": "python"}, 0),
]  # fmt: skip


@pytest.mark.requirement("LOG-10")
def test_trials_left_out_are_counted_with_the_same_filters(database: Database, writer: LogWriter) -> None:
    log = Log(database)
    recorded(writer, failed, timestamp=at(0), run_id="r1")
    for second in range(1, 7):
        try_out(writer, TRIED[second % 2], second, well=second % 3 != 0)
    for filters, left_out in LEFT_OUT:
        page = log.query(**filters, tried=False)
        assert page.left_out == left_out, filters
        assert len(log.query(**filters)) == len(page) + page.left_out, filters
    named = log.query(origin="search", tried=False)
    assert ([row.origin for row in named], named.left_out) == (["search"] * 3, 0)


@LOG_10
def test_a_text_that_is_too_long_is_refused_before_it_is_looked_for(
    writer: LogWriter, database: Database
) -> None:
    """T11: 40 KB of `a* a* …` had no answer within ten seconds."""
    fail(writer, TRACEBACK)
    log = Log(database)
    with pytest.raises(UsageInvalid, match=r"at most 1,000 characters, and this one 40,000"):
        log.query(text="a* " * 13_333 + "a")
    assert len(log.query(text="café* " * 150)) == 1
