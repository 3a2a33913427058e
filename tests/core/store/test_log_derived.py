"""Counts beside the log always equal a recount."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text
from store_samples import dead_host, failed, moment, recorded, started, succeeded

from healkit.core.contracts.execution import Finished, Started, utc_now
from healkit.core.contracts.failure import Failure
from healkit.core.pysource.tracebacks import fingerprint
from healkit.core.runtime.recording import Recorder
from healkit.core.store.database import Database
from healkit.core.store.log_reader import Log
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.models import DAYS, GROUPS, LOG
from healkit.core.store.vault import Vault
from healkit.errors import TOOL_CODES, UsageInvalid, is_refused

LOG_10, LOG_11 = (pytest.mark.requirement(f"LOG-{n}") for n in (10, 11))
ENDS = sorted({*(digit * 10**power for power in range(9) for digit in (1, 2, 5)), 10**9})
BASE = datetime(2026, 1, 1, 23, 59, 59, 999999, tzinfo=UTC)


def recounted(database: Database) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Days and groups as the rows themselves say."""
    days: dict[Any, list[int]] = {}
    groups: dict[Any, list[tuple[datetime, int]]] = {}
    with database.read() as session:
        ended = select(LOG).where(LOG.c.status != "RUNNING").order_by(LOG.c.timestamp, LOG.c.id)
        rows = session.execute(ended).all()
    for row in rows:
        at, ms = row.timestamp, row.duration_ms
        within = 0 if ms is None else next((end for end in ENDS if ms <= end), 2_000_000_000)
        counts = days.setdefault(
            (row.tool_name, at.date(), row.persona, _counted_under(row), within), [0, 0, 0, 0]
        )
        counts[0] += 1
        refused = row.status == "FAILURE" and is_refused(row.error_code)
        counts[1] += row.status == "FAILURE" and not refused
        counts[2] += int((ms or 0) * 1000)
        counts[3] += refused
        if row.status == "FAILURE" and row.fingerprint is not None:
            groups.setdefault((row.fingerprint, row.tool_name, row.persona), []).append((at, row.id))
    return days, {key: (len(rows), *rows[0], *rows[-1]) for key, rows in groups.items()}


def _counted_under(row: Any) -> int:
    """Return the revision, 0 where none was known, -1 where code was only tried."""
    return -1 if row.origin in {"trial", "search"} else row.revision or 0


def kept(database: Database) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Days and groups as they are kept."""
    with database.read() as session:
        days = session.execute(select(DAYS)).all()
        groups = session.execute(select(GROUPS)).all()
    return (
        {(r.tool_name, r.day, r.persona, r.revision, r.within_ms): [r.runs, r.failures, r.total_us, r.refused] for r in days},
        {
            (r.fingerprint, r.tool_name, r.persona): (r.failures, r.first_seen, r.first_log_id, r.last_seen, r.last_log_id)
            for r in groups
        },
    )  # fmt: skip


BEGINNINGS = st.fixed_dictionaries(
    {
        "tool": st.sampled_from(["alpha", "beta"]),
        "persona": st.sampled_from(["default", "teacher"]),
        "revision": st.sampled_from([None, 1, 2]),
        "origin": st.sampled_from(["python", "trial"]),
        "timestamp": st.integers(-3, 3).map(lambda n: BASE + timedelta(microseconds=n)),
    }
)
ENDINGS = st.tuples(
    st.sampled_from(["ok", "v1:a", "v1:b", None, "v1:refused"]),
    st.floats(0, 5e9) | st.integers(0, 60).map(float),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), BEGINNINGS),
        st.tuples(st.just("finish"), st.integers(0, 9), ENDINGS),
        st.tuples(st.just("whole"), BEGINNINGS, ENDINGS),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 9), max_size=5)),
        st.tuples(st.just("move"), st.integers(0, 9), BEGINNINGS),
        st.tuples(st.just("lose"), st.integers(0, 9)),
        st.tuples(
            st.just("code"), st.integers(0, 9), st.sampled_from(["TOOL_NOT_FOUND", "TOOL_TIMEOUT", None])
        ),
    ),
    max_size=14,
)


def ended(begun: Started, ending: tuple[str | None, float]) -> Finished:
    """Make the record of that outcome and duration."""
    kind, duration_ms = ending
    failure = None if kind == "ok" else Failure(_code(kind), "Error", "no", "Error: no")
    return Finished(
        begun.trace_id, utc_now(), duration_ms, failure=failure, fingerprint=None if kind == "ok" else kind
    )


def _code(kind: str | None) -> str:
    return "ARGUMENTS_INVALID" if kind == "v1:refused" else "TOOL_EXCEPTION"


@pytest.mark.slow
@LOG_10
@LOG_11
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_days_and_groups_equal_a_recount_after_any_change(
    database: Database, writer: LogWriter, steps: list[tuple[Any, ...]]
) -> None:
    with database.write() as session:
        session.execute(text("DELETE FROM executionlog"))
    rows: list[Started] = []

    def one(index: int) -> str:
        return rows[index % len(rows)].trace_id

    for step in steps:
        if step[0] in {"begin", "whole"}:
            rows.append(started(**step[1]))
        if not rows:
            continue
        with (
            database.write()
            if step[0] in {"delete", "move", "lose", "code"}
            else contextlib.nullcontext() as session
        ):
            match step:
                case ("begin", _):
                    writer.begin(rows[-1])
                    writer.begin(rows[-1])
                case ("whole", _, ending):
                    writer.insert_finished(rows[-1], ended(rows[-1], ending))
                case ("finish", index, ending):
                    with contextlib.suppress(Exception):
                        writer.finish(ended(rows[index % len(rows)], ending))
                case ("delete", indexes):
                    names = ",".join(f"'{one(i)}'" for i in indexes) or "''"
                    session.execute(text(f"DELETE FROM executionlog WHERE trace_id IN ({names})"))
                case ("move", index, to):
                    values = {"t": to["tool"], "p": to["persona"], "r": to["revision"], "i": one(index)}
                    session.execute(
                        text(
                            "UPDATE executionlog SET tool_name=:t, persona=:p, revision=:r WHERE trace_id=:i"
                        ),
                        values,
                    )
                case ("lose", index):
                    session.execute(
                        text("UPDATE executionlog SET duration_ms=NULL, fingerprint=NULL WHERE trace_id=:i"),
                        {"i": one(index)},
                    )
                case ("code", index, code):
                    session.execute(
                        text("UPDATE executionlog SET error_code=:c WHERE trace_id=:i"),
                        {"c": code, "i": one(index)},
                    )
        assert kept(database) == recounted(database), step


@LOG_10
def test_orphans_and_replayed_spools_are_counted_once(database: Database) -> None:
    with contextlib.closing(LogWriter(database)) as writer:
        writer.begin(started(host=dead_host()))
    recorder = Recorder(database)
    assert recorder.recover_orphans() == 1
    assert recorder.recover_orphans() == 0
    begun = started()
    for record in (begun, failed(begun), failed(begun)):
        recorder._backlog.spool.append(record)
    recorder.ingest()
    recorder.close()
    days, groups = kept(database)
    assert (days, groups) == recounted(database)
    assert [counts[:2] for counts in days.values()] == [[1, 1], [1, 1]]
    assert sorted(group[0] for group in groups.values()) == [1, 1]


@LOG_10
def test_the_microseconds_of_a_duration_are_cut_and_not_rounded(
    database: Database, writer: LogWriter
) -> None:
    """For an orphan's duration of 1064.4199999999998 ms, PostgreSQL had 1,064,420 µs, and SQLite 1,064,419."""
    begun = started()
    writer.insert_finished(begun, ended(begun, ("ok", 1064.4199999999998)))
    days, _ = kept(database)
    assert list(days.values()) == [[1, 0, 1_064_419, 0]]


@LOG_10
def test_a_summary_counts_by_the_columns_asked_for(database: Database, writer: LogWriter) -> None:
    for day in (1, 2):
        for duration_ms in (3.0, 4.0, 30.0, 400.0):
            begun = started("alpha", timestamp=moment(f"2026-01-0{day}T12:00:00+00:00"), revision=day)
            writer.insert_finished(begun, Finished(begun.trace_id, utc_now(), duration_ms))
    recorded(
        writer,
        failed,
        "beta",
        persona="teacher",
        revision=None,
        timestamp=moment("2026-01-02T00:00:00+00:00"),
    )
    writer.begin(started("gamma"))
    log = Log(database)
    alpha, beta = log.summary()
    assert (alpha.tool_name, alpha.runs, alpha.failures, alpha.failure_rate) == ("alpha", 8, 0, 0.0)
    assert (alpha.mean_ms, alpha.p50_ms, alpha.p95_ms) == (109.25, 5.0, 500.0)
    assert (beta.failures, beta.failure_rate, beta.persona, beta.revision) == (1, 1.0, None, None)
    assert [(row.tool_name, row.runs) for row in log.summary(since="2026-01-02", until="2026-01-03")] == [
        ("alpha", 4),
        ("beta", 1),
    ]
    assert [(row.revision, row.runs) for row in log.summary(tool="alpha", by=["revision"])] == [
        (1, 4),
        (2, 4),
    ]
    assert [(row.day, row.persona) for row in log.summary(persona="teacher", by=["day", "persona"])] == [
        (date(2026, 1, 2), "teacher")
    ]
    assert [row.revision for row in log.summary(tool="beta", by=["revision"])] == [None]
    assert list(log.summary().to_pandas()["failure_rate"]) == [0.0, 1.0]
    assert len(log.summary(tool="nobody").to_pandas()) == 0
    with pytest.raises(ValueError, match="'week'"):
        log.summary(by=["week"])


@pytest.mark.slow
@LOG_11
def test_a_group_has_its_count_times_and_revisions(database: Database, writer: LogWriter) -> None:
    def run(end: Any, revision: int, minute: int, **changes: Any) -> int:
        begun = started(
            "fibonacci", revision=revision, timestamp=moment(f"2026-01-01T12:{minute:02}:00+00:00"), **changes
        )
        return writer.insert_finished(begun, end(begun))

    run(succeeded, 1, 0)
    first = run(failed, 2, 1)
    run(failed, 2, 2)
    run(succeeded, 2, 3)
    last = run(failed, 3, 4)
    run(lambda begun: failed(begun, "other line"), 3, 5)
    run(failed, 3, 6, persona="teacher")
    log = Log(database)
    teacher, other, mine = log.groups()
    assert (mine.count, mine.first_revision, mine.last_revision, mine.cured_by) == (3, 2, 3, None)
    assert (mine.first_log_id, mine.last_log_id, mine.summary) == (
        first, last, "ZeroDivisionError: division by zero",
    )  # fmt: skip
    assert (mine.first_seen.isoformat(), mine.last_seen.minute) == ("2026-01-01T12:01:00+00:00", 4)
    assert (other.count, teacher.persona, teacher.fingerprint) == (1, "teacher", mine.fingerprint)
    run(succeeded, 5, 7)
    run(succeeded, 6, 8)
    assert [group.cured_by for group in log.groups()] == [
        5,
        5,
        5,
    ]  # the teacher is served by the default entry
    Vault(database).add("fibonacci", "def fibonacci(n): return n", persona="teacher")
    assert [group.cured_by for group in log.groups()] == [None, 5, 5]
    assert [group.count for group in log.groups(persona="default", fingerprint=mine.fingerprint)] == [3]
    assert [group.count for group in log.groups(tool="fibonacci", limit=1)] == [1]
    assert [g.fingerprint for g in log.groups(until="2026-01-01T12:05:00+00:00")] == [mine.fingerprint]
    assert len(log.groups(since="2026-01-01T12:05:00+00:00")) == 2
    Vault(database).add("fibonacci", "def fibonacci(n): return n")
    blamed = Vault(database).blame("fibonacci", mine.fingerprint)
    assert (blamed.first_failed, blamed.last_cured_by, blamed.count) == (mine.first_revision, 5, mine.count)
    frame = log.groups().to_pandas()
    assert list(frame.columns[:4]) == ["tool_name", "persona", "count", "first_seen"]
    assert list(frame["count"]) == [1, 1, 3]
    assert list(log.groups(tool="none").to_pandas().columns) == list(frame.columns)


def refused(begun: Started, code: str = "ARGUMENTS_INVALID") -> Finished:
    """Make the record of a call that was refused."""
    failure = Failure(code, "ArgumentsInvalid", "n is missing", "ArgumentsInvalid: n is missing")
    return Finished(begun.trace_id, utc_now(), 0.5, failure=failure, fingerprint=fingerprint(failure))


@LOG_10
@LOG_11
@pytest.mark.dialect
def test_refused_calls_are_counted_and_grouped_apart_from_failures_of_code(
    database: Database, writer: LogWriter
) -> None:
    log = Log(database)
    for end in (succeeded, failed, refused, refused):
        begun = started("share", isolation=None if end is refused else "namespaces")
        writer.begin(begun)
        writer.finish(end(begun))
    (share,) = log.summary()
    assert (share.runs, share.failures, share.refused, share.failure_rate) == (4, 1, 2, 0.5)
    counts = {status: log.count(status=status) for status in (None, "SUCCESS", "FAILURE", "refused")}
    assert counts == {None: 4, "SUCCESS": 1, "FAILURE": 3, "refused": 2}
    assert list(log.metrics()["refused"]) == [2]
    assert [row.error_code for row in log.query(status="refused", tool="share")] == ["ARGUMENTS_INVALID"] * 2
    assert [row.error_code for row in log.query(status="FAILURE", refused=False)] == ["TOOL_EXCEPTION"]
    assert len(log.query(status="FAILURE")) == 3
    assert len(log.query(status="REFUSED", text="missing")) == 2
    assert log.last_error().error_code == "ARGUMENTS_INVALID"
    groups = log.groups()
    assert ([group.ename for group in groups], groups.left_out) == (["ZeroDivisionError"], 2)
    assert [(group.ename, group.count) for group in log.groups(status="REFUSED")] == [("ArgumentsInvalid", 2)]
    assert len(log.groups(status="FAILURE")) == 2
    for group, count in zip(log.groups(status="FAILURE"), (2, 0), strict=True):
        filters = {"fingerprint": group.fingerprint, "tool": "share"}
        assert log.groups(**filters).left_out == log.count_refused(**filters) == count
        assert log.count_refused(**filters, since="2020-01-01") == count
    with pytest.raises(UsageInvalid, match="SUCCESS"):
        log.groups(status="SUCCESS")
    text = log.prometheus()
    for status, count in (("SUCCESS", 1), ("FAILURE", 1), ("REFUSED", 2)):
        assert f'persona="default",status="{status}",tool="share"}} {count}.0' in text
    log.prune(keep=1)
    assert kept(database) == recounted(database)


@LOG_11
@pytest.mark.dialect
def test_a_refused_call_of_a_later_revision_cures_nothing(database: Database, writer: LogWriter) -> None:
    for end, revision in ((failed, 1), (refused, 2)):
        recorded(writer, end, "share", revision=revision)
    assert [group.cured_by for group in Log(database).groups()] == [None]


@LOG_10
@pytest.mark.dialect
def test_the_triggers_and_the_index_know_the_codes_of_today(database: Database) -> None:
    with database.read() as session:
        known = (
            "SELECT sql FROM sqlite_master WHERE name IN ('executionlog_inserted', 'executionlog_ended',"
            " 'executionlog_changed', 'executionlog_day_delete', 'ix_executionlog_refused_time')"
            if database.dialect_name == "sqlite"
            else "SELECT pg_get_functiondef('healkit_log_changed'::regproc) UNION ALL SELECT indexdef"
            " FROM pg_indexes WHERE indexname = 'ix_executionlog_refused_time'"
        )
        for (sql,) in session.execute(text(known)):
            codes = set(
                re.findall(r"'((?!SUCCESS|FAILURE|RUNNING|INSERT|DELETE|UTC)[A-Z]+(?:_[A-Z]+)*)'", sql)
            )
            assert codes == set(TOOL_CODES), sql
