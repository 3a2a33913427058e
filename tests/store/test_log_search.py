"""Full-text search of tracebacks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, text
from store_samples import failed, moment, started, succeeded

from healkit.contracts.execution import Finished, utc_now
from healkit.contracts.failure import Failure
from healkit.errors import UsageInvalid
from healkit.store.database import Database
from healkit.store.log_reader import Log
from healkit.store.log_writer import LogWriter

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
        {},
        {"tool": "alpha_one"},
        {"persona": "teacher"},
        {"tool": "alpha_one_two", "persona": "default"},
        {"run": "run-1"},
        {"fingerprint": "v1:a1"},
        {"status": "FAILURE"},
        {"since": base + timedelta(seconds=2), "until": base + timedelta(seconds=8)},
        {"since": base + timedelta(seconds=5, microseconds=1)},
    ]
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
    begun = started()
    sqlite_writer.insert_finished(begun, failed(begun))
    with sqlite_database.write() as session:
        session.execute(text("DELETE FROM executionlog"))
        assert session.execute(text("SELECT count(*) FROM executionlog_fts_rows")).scalar() == 0
        left = session.execute(
            text("SELECT rowid FROM executionlog_fts WHERE executionlog_fts MATCH 'traceback : r*'")
        )
        assert left.all() == []


@LOG_10
@pytest.mark.parametrize(
    "when",
    ["1970-01-01T00:00:00+00:00", "1965-05-05T05:05:05.000500+00:00", "2105-01-01T00:00:00.999999+00:00"],
)
def test_rows_of_any_year_are_found_by_time(database: Database, writer: LogWriter, when: str) -> None:
    wanted = fail(writer, "common", timestamp=moment(when))
    log, at = Log(database), datetime.fromisoformat(when)
    assert [row.id for row in log.query(text="common", since=at, until=at + timedelta(microseconds=1))] == [
        wanted
    ]
    assert pages(log, 1, text="common") == [wanted]


@LOG_10
def test_common_words_are_streamed_from_the_index_without_a_sort(
    sqlite_database: Database, sqlite_writer: LogWriter
) -> None:
    fail(sqlite_writer, TRACEBACK)
    asked: list[tuple[str, Any]] = []
    event.listen(
        sqlite_database.engine,
        "before_cursor_execute",
        lambda _c, _k, sql, values, *_: asked.append((sql, values)),
    )
    filters = {
        "tool": "fibonacci",
        "persona": "teacher",
        "fingerprint": "v1:x",
        "run": "r",
        "status": "FAILURE",
    }
    Log(sqlite_database).query(text="such file", since="2026-01-01", **filters)
    sql, values = next((s, v) for s, v in asked if "ORDER BY executionlog_fts" in s)
    with sqlite_database.engine.connect() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert "SCAN executionlog_fts VIRTUAL TABLE" in plan[0]
    assert ["PRIMARY KEY" in step for step in plan[1:]] == [True, True]


def many_failures(database: Database, count: int, words: int) -> None:
    """Insert failures whose tracebacks hold so many different words with one beginning, in one statement."""
    columns = (
        "timestamp",
        "tool_name",
        "persona",
        "status",
        "error_traceback",
        "trace_id",
        "origin",
        "last_output",
    )
    made = (
        f"INSERT INTO executionlog ({', '.join(columns)}) "
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
        "SELECT CAST('2026-01-02 03:04:05.000000' AS {time}), CASE WHEN i < 10 THEN 'rare' ELSE 'busy' END,"
        f" 'default', 'FAILURE', 'word' || (i % {words}) || ' => same' || (i % 5), CAST(i AS text), 'python', '' FROM n"
    )
    time = "text" if database.dialect_name == "sqlite" else "timestamp"
    with database.write() as session:
        session.execute(text(made.replace("{time}", time)))


def test_a_beginning_of_few_words_is_found_in_a_log_of_any_size(database: Database) -> None:
    many_failures(database, 21_000, 5_000)
    log = Log(database)
    assert len(log.query(text="sam*", limit=30)) == len(log.query(text="SAME", limit=30)) == 30
    assert len(log.query(text="word4999*")) == 4
    assert len(log.query(text="same4 word499*", limit=100)) == 13  # those of 499, 4994 and 4999


@LOG_10
def test_a_search_that_no_index_answers_is_refused_with_its_reason(database: Database) -> None:
    """R9: what many rows would have to be read for is refused; a word that is nowhere was too, as one of many words."""
    many_failures(database, 21_000, 5_000)
    log = Log(database)
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


def test_a_smaller_log_is_searched_for_any_text(database: Database) -> None:
    many_failures(database, 2_000, 500)
    log = Log(database)
    assert len(log.query(text="wo*", limit=3000)) == len(log.query(text="=>", limit=3000)) == 2_000
