"""Executions that only try code out are counted apart."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text
from store_samples import failed, started, succeeded

from healkit.contracts.execution import Filters, Finished
from healkit.runtime.history import NewestRows
from healkit.store.database import Database
from healkit.store.log_pages import indexed_facts
from healkit.store.log_reader import Log
from healkit.store.log_writer import LogWriter
from healkit.store.vault import Vault

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
    assert found is not None
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


def test_trials_are_counted_and_found_by_origin(database: Database, writer: LogWriter) -> None:
    log = Log(database)
    for second, origin in enumerate(TRIED):
        try_out(writer, origin, second)
    begun = started(timestamp=at(9))
    writer.insert_finished(begun, failed(begun))
    assert (log.count(), log.count(status="FAILURE"), log.count(tool="fibonacci")) == (3, 3, 3)
    assert [row.origin for row in log.query(origin="search")] == ["search"]
    assert [row.origin for row in log.query(status="FAILURE")] == ["python", "search", "trial"]
    assert [row.origin for row in log.query(status="FAILURE", tried=False)] == ["python"]


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
            begun = started(timestamp=at(second))
            writer.insert_finished(begun, failed(begun) if second % 2 else succeeded(begun))
    for limit in (-1, 1, 3, 4, 5, 50):
        page = log.query(tried=False, limit=limit)
        rows, left_out = newest.page(limit)
        assert [vars(row) for row in rows] == [row.model_dump() for row in page]
        assert left_out == page.left_out


LEFT_OUT: list[tuple[dict[str, Any], int]] = [
    ({}, 6),
    ({"status": "FAILURE"}, 2),
    ({"tool": "fibonacci"}, 6),
    ({"tool": "fibonacci", "status": "SUCCESS"}, 4),
    ({"tool": "other"}, 0),
    ({"persona": "teacher"}, 0),
    ({"text": "ZeroDivisionError"}, 2),
    ({"text": "=>"}, 0),
    ({"since": "2026-01-02T03:04:03Z"}, 4),
    ({"until": "2026-01-02T03:04:03Z"}, 2),
    ({"run": "r1"}, 0),
    ({"origin": "python"}, 0),
]


@pytest.mark.requirement("LOG-10")
def test_trials_left_out_are_counted_with_the_same_filters(database: Database, writer: LogWriter) -> None:
    log = Log(database)
    begun = started(timestamp=at(0), run_id="r1")
    writer.insert_finished(begun, failed(begun))
    for second in range(1, 7):
        try_out(writer, TRIED[second % 2], second, well=second % 3 != 0)
    for filters, left_out in LEFT_OUT:
        page = log.query(**filters, tried=False)
        assert page.left_out == left_out, filters
        assert len(log.query(**filters)) == len(page) + page.left_out, filters


def test_own_matches_are_found_among_a_tools_many_trials(
    sqlite_database: Database, sqlite_writer: LogWriter
) -> None:
    """R9: a text was looked for in every trial of the tool; the index knows own rows by now."""
    for second in range(10):
        try_out(sqlite_writer, TRIED[second % 2], second)
    begun = started(timestamp=at(20))
    own = sqlite_writer.insert_finished(begun, failed(begun))
    for filters in ({}, {"tool": "fibonacci"}, {"tool": "fibonacci", "persona": "default"}):
        with sqlite_database.read() as session:
            facts = [f'{{facts}} : "{fact}"' for fact in indexed_facts(Filters(tried=False, **filters))]
            found = session.execute(
                text("SELECT count(*) FROM executionlog_fts WHERE executionlog_fts MATCH :words"),
                {"words": " AND ".join(facts)},
            ).scalar()
        assert found == 1, filters
        page = Log(sqlite_database).query(text="ZeroDivisionError", tried=False, **filters)
        assert ([row.id for row in page], page.left_out) == ([own], 10)
        assert len(Log(sqlite_database).query(text="ZeroDivisionError", **filters)) == 11


def test_naming_their_origin_includes_trials(database: Database, writer: LogWriter) -> None:
    try_out(writer, "search", 1)
    page = Log(database).query(origin="search", tried=False)
    assert (len(page), page.left_out) == (1, 0)
