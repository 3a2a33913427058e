"""Traces: one for each execution, whole and without secrets."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from tracing_samples import failed, started, succeeded, trace_rows
from trip_samples import KEY, opened, trace_of
from waiting import wait_until

from healkit import Config, Healkit
from healkit.core.contracts.execution import CallRecord, DecisionRecord, utc_now
from healkit.core.secrets.cleaner import Verbatim
from healkit.errors import ArgumentsInvalid, RulesInvalid, ToolNotFound
from healkit.parts.traces.contract import ExecutionTrace, read_trace
from healkit.parts.traces.trace_collector import Tracer

GOLDEN = Path(__file__).parent / "golden" / "trace.json"


TRACE_1, TRACE_5 = (pytest.mark.requirement(f"TRACE-{n}") for n in (1, 5))


@TRACE_1
def test_a_trace_matches_its_golden_file(hk: Healkit) -> None:
    """`HEALKIT_REGENERATE=1` writes it anew; ids, times, durations and the process are levelled."""
    execution = hk.execute("trip", arguments={"city": "Lisbon", "days": 3, "token": KEY})
    assert execution.ok, execution
    row = trace_rows(hk.path)[-1]
    text = re.sub(r'("durationMs": )[\d.]+', r"\g<1>1.5", json.dumps(json.loads(row["wire"]), indent=2))
    text = re.sub(r'("process": )"[0-9a-f]{12}"', r'\g<1>"0123456789ab"', text)
    text = text.replace(execution.trace_id, "01890000-0000-7000-8000-000000000000")
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "2026-01-02T03:04:05.678900Z", text)
    # The host's own stack is in there, whose lines are another file's business.
    text = re.sub(r'"CALL_FAILED: Traceback .*?\\n(ZeroDivisionError)', r'"CALL_FAILED: … \1', text) + "\n"
    if os.environ.get("HEALKIT_REGENERATE"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


@TRACE_1
@pytest.mark.parametrize("mode", ["worker", "subprocess"])
def test_calls_and_decisions_keep_their_order(hk: Healkit, mode: Any) -> None:
    execution = hk.execute("trip", arguments={"city": "Lisbon", "days": 3}, mode=mode)
    trace = trace_of(hk, execution.trace_id)
    assert [(t.task_id, t.tool, t.success) for t in trace.task_results] == [
        ("t1", "host:forecast", True), ("t2", "host:book", False),
    ]  # fmt: skip
    assert [(d.node_id, d.outcome, d.condition) for d in trace.decisions] == [
        ("length", "short", "3 < 4"), ("weather", "clear", ""), ("booking", "False", "the hotel is full"),
    ]  # fmt: skip
    for seen in (execution, hk.execution(execution.log_id)):
        assert [(d.number, d.after_task) for d in seen.decisions] == [(1, ""), (2, "t1"), (3, "t2")]
        said = seen.to_text()
        assert said.index("length: short, because 3 < 4") < said.index("t1 host.forecast")
        assert said.index("t1 host.forecast") < said.index("weather: clear") < said.index("t2 host.book")
        assert "booking: False, because the hotel is full" in seen.to_html()


@TRACE_1
def test_a_nested_execution_names_its_parent(hk: Healkit) -> None:
    hk.vault.add("outer", "def outer():\n    return mcp.vault.trip(city='Lisbon', days=9)\n")
    execution = hk.execute("outer")
    inner, outer = trace_rows(hk.path)[-2:]
    assert [row["parent_trace_id"] for row in (inner, outer)] == [execution.trace_id, None]
    assert read_row(inner).parent_id == read_row(outer).id == execution.trace_id
    assert read_row(outer).parent_id is None
    assert read_row(outer).task_results[0].tool == "vault:trip"


@TRACE_1
def test_a_capability_is_named_after_the_entry_that_ran(hk: Healkit) -> None:
    hk.vault.add("one", "SELECT 1 AS one", type="sql")
    hk.vault.add("two", "SELECT 2 AS two", type="sql")
    hk.vault.add("two", "SELECT 2 AS two, 'for teachers' AS note", type="sql", persona="teacher")
    for tool in ("one", "two", "trip"):
        with contextlib.suppress(ArgumentsInvalid):
            hk.execute(tool, "teacher")
    traces = [read_row(row) for row in trace_rows(hk.path)[-3:]]
    assert [t.capability_id.rpartition(".")[0] for t in traces] == [
        "local.default.default.one", "local.default.teacher.two", "local.default.default.trip",
    ]  # fmt: skip
    assert {t.metadata["persona"] for t in traces} == {"teacher"}


def read_row(row: dict[str, Any]) -> ExecutionTrace:
    return read_trace(row["wire"])


@TRACE_1
def test_failures_refusals_queries_and_trials_have_traces(hk: Healkit) -> None:
    hk.vault.add("fails", "def fails():\n    print('almost')\n    return {}['x']\n")
    hk.vault.add("one", "SELECT 1 AS one", type="sql")
    hk.execute("fails")
    hk.execute("one")
    with pytest.raises(ToolNotFound):
        hk.execute("nobody")
    with pytest.raises(ArgumentsInvalid):
        hk.execute("trip", arguments={"days": "many"})
    hk.trials([("def f(n):\n    trace.decision('a', 'b')\n    return n", {"n": 1})])
    traces = [read_row(row) for row in trace_rows(hk.path)]
    assert hk.log.count() == len(traces)
    traces = traces[-5:]
    assert [(t.capability_id.split(".")[3], t.success) for t in traces] == [
        ("fails", False), ("one", True), ("nobody", False), ("trip", False), ("trial", True),
    ]  # fmt: skip
    failed = traces[0]
    assert failed.error == "KeyError: 'x'"
    assert failed.metadata["errorCode"] == "TOOL_EXCEPTION"
    assert "return {}['x']" in failed.metadata["traceback"]
    assert failed.metadata["lastOutput"].strip() == "almost"
    assert traces[1].metadata["result"]["columns"] == ["one"]
    assert traces[2].capability_id.endswith(".nobody.none")


@TRACE_1
def test_a_stopped_execution_has_a_trace_with_its_open_call(hk: Healkit) -> None:
    waiting = threading.Event()
    hk.provide(lambda: waiting.wait(30), "wait")
    hk.vault.add("waits", "def waits():\n    trace.decision('before', 'yes')\n    mcp.host.wait()\n")
    execution = hk.execute("waits", timeout=0.2)
    waiting.set()
    trace = trace_of(hk, execution.trace_id)
    assert not trace.success
    assert [d.node_id for d in trace.decisions] == ["before"]
    assert [(t.tool, t.success) for t in trace.task_results] == [("host:wait", False)]


@TRACE_1
def test_a_worker_cannot_flood_or_forge_decisions(tmp_path: Path) -> None:
    code = """
def floods():
    for n in range(50):
        trace.decision("n" * 5000, n, "c" * 5000)
    trace.decision("\\ud800", object, None)
    answers = []
    for args in (b"[]", b'{"node": 1, "outcome": 2}', b'{"node": "' + b"x" * 100000 + b'"}', b"null"):
        answers.append(trace._endpoint.call("@trace", "decision", msgspec.Raw(args)).error.code)
    return answers
import msgspec
"""
    with opened(tmp_path / "healkit.db", trace_max_tasks=10) as hk:
        hk.vault.add("floods", code)
        execution = hk.execute("floods")
        assert execution.value == ["CALL_REFUSED"] * 4
        trace = trace_of(hk, execution.trace_id)
    assert len(trace.decisions) == 11
    assert trace.decisions[-1].outcome == "[TRUNCATED]"
    assert all(len(d.node_id) <= 200 and len(d.condition) <= 1000 for d in trace.decisions)
    assert trace.task_results == []


@TRACE_5
def test_tracing_can_be_switched_off(tmp_path: Path) -> None:
    with opened(tmp_path / "healkit.db", tracing=False) as hk:
        execution = hk.execute("trip", arguments={"city": "Lisbon", "days": 3})
        assert execution.ok
        assert hk.log.count() == 1
        assert hk.traces.get(execution.trace_id) is None
    assert trace_rows(tmp_path / "healkit.db") == []


ODD = {
    "nan": float("nan"), "binary": b"\x00\xff" * 100, "surrogate": "\ud800 lone", "keys": {1: {2: 3}},
    "nulls": [None] * 10, "huge": 10**30, "long": "x" * 3_000_000,
}  # fmt: skip


@pytest.mark.slow
@TRACE_1
def test_any_arguments_give_a_readable_trace(hk: Healkit) -> None:
    hk.vault.add("size", "def size(a):\n    return len(repr(a))\n")
    before = len(trace_rows(hk.path))
    for value in ODD.values():
        cyclic: list[Any] = [value]
        cyclic.append(cyclic)
        hk.execute("size", arguments={"a": value})
        hk.execute("size", arguments={"a": {"deep": [(value,), value]}})
        with pytest.raises(ArgumentsInvalid, match="refers back"):
            hk.execute("size", arguments={"a": cyclic})
    with pytest.raises(ArgumentsInvalid):
        hk.execute("size", arguments={"a": "x" * 50_000_000})
    traces = [read_row(row) for row in trace_rows(hk.path)[before:]]
    assert len(traces) == 3 * len(ODD) + 1
    assert all("problem" not in trace.metadata for trace in traces)


@TRACE_1
def test_a_late_ending_brings_its_trace(tmp_path: Path) -> None:
    database = tmp_path / "healkit.db"
    with opened(database, log_wait_s=0.1, sync_url="http://127.0.0.1:9", sync_interval_s=60.0) as hk:
        locker = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
        locker.execute("BEGIN IMMEDIATE")
        execution = hk.execute("trip", arguments={"city": "Lisbon", "days": 3})
        assert execution.ok
        assert trace_rows(database) == []
        locker.execute("ROLLBACK")
        locker.close()
        wait_until(lambda: [row["state"] for row in trace_rows(database)] == ["pending"])
        trace = trace_of(hk, execution.trace_id)
        assert len(trace.task_results) == 2
        assert len(trace.decisions) == 3


def test_a_child_forked_while_the_sanitiser_loads_makes_its_own() -> None:
    loading, go_on = threading.Event(), threading.Event()

    def slow() -> Verbatim:
        loading.set()
        go_on.wait(30)
        return Verbatim()

    tracer = Tracer(Config(), slow)
    begun = started()
    collector = tracer.collector(begun)
    assert loading.wait(10)
    pid = os.fork()
    if pid == 0:
        go_on.set()
        os._exit(0 if collector.conclude(succeeded(begun)).trace is not None else 1)
    go_on.set()
    assert wait_until(lambda: (ended := os.waitpid(pid, os.WNOHANG))[0] and ended) == (pid, 0)


@TRACE_1
def test_a_trace_that_fails_says_so() -> None:
    def broken() -> Verbatim:
        raise OSError("no tables")

    begun = started()
    finished = Tracer(Config(), broken).collector(begun).conclude(failed(begun))
    trace = read_trace(finished.trace.wire)
    assert (trace.id, trace.success, trace.error) == (begun.trace_id, False, "TOOL_EXCEPTION")
    assert trace.metadata == {"problem": "OSError"}


@pytest.mark.slow
@pytest.mark.requirement("WORK-11", "TRACE-1")
@pytest.mark.parametrize("text", ["x" * 10_000, "é\x01" * 5_000], ids=["ascii", "escaped"])
def test_decisions_and_calls_alone_make_no_trace_over_a_megabyte(text: str) -> None:
    """C4: decisions, errors and tool names did not count, and a trace of 1,000 long decisions had 12 MB."""
    begun = started()
    collector = Tracer(Config(trace_raw=True, payload_max_bytes=100_000)).collector(begun)
    for number in range(1, 1001):
        collector.add(DecisionRecord(begun.trace_id, number, "", text, text, text, utc_now()))
        known = {"success": False, "error_code": "CALL_FAILED", "error": text}
        collector.add(CallRecord(begun.trace_id, f"t{number}", "host", text[:400], "{}", utc_now(), **known))
    finished = collector.conclude(failed(begun))
    assert len(finished.trace.wire.encode()) <= 1_000_000
    trace = read_trace(finished.trace.wire)
    kept = len(trace.decisions), len(trace.task_results)
    assert min(kept) > 0
    assert kept[0] + trace.metadata["decisionsOmitted"] == 1000
    assert kept[1] + trace.metadata["tasksOmitted"] == 1000


TRACE_2, TRACE_5 = (pytest.mark.requirement(f"TRACE-{n}") for n in (2, 5))


@TRACE_2
def test_a_trace_holds_no_secrets_and_counts_them(hk: Healkit) -> None:
    leaking = f"def leaks(password: str):\n    print('mail ann@example.com')\n    raise ValueError('{KEY}')\n"
    hk.vault.add("leaks", leaking)
    trip = hk.execute("trip", arguments={"city": "Lisbon", "days": 3, "token": f"tk_{KEY}hunter2"})
    leaks = hk.execute("leaks", arguments={"password": "hunter2-hunter2"})
    wires = {row["trace_id"]: row["wire"] for row in trace_rows(hk.path)}
    for wire in wires.values():
        assert "hunter2" not in wire
        assert KEY not in wire
        assert "ann@example.com" not in wire
    assert sum(trace_of(hk, trip.trace_id).metadata["hidden"].values()) >= 2
    assert "email" in trace_of(hk, leaks.trace_id).metadata["hidden"]
    # The log is what a run is repeated from.
    assert hk.execution(leaks.log_id).uncleaned.arguments == {"password": "hunter2-hunter2"}


@TRACE_2
def test_payloads_are_truncated_after_cleaning_and_their_size_kept(hk: Healkit) -> None:
    hk.provide(lambda: {"rows": ["word " * 20] * 500, "end": KEY}, "much")
    hk.vault.add("much", "def much(text: str):\n    return mcp.host.much()\n")
    execution = hk.execute("much", arguments={"text": "word " * 4000})
    trace = trace_of(hk, execution.trace_id)
    places = {"metadata.arguments", "metadata.result", "taskResults[0].result"}
    assert set(trace.metadata["truncated"]) == places
    assert all(size > 20_000 for size in trace.metadata["truncated"].values())
    row = trace_rows(hk.path)[-1]
    assert row["wire"].count("[TRUNCATED]") == 3
    assert len(row["wire"]) < 40_000
    assert KEY[:8] not in row["wire"]


@TRACE_2
def test_raw_traces_need_opt_in(tmp_path: Path) -> None:
    with opened(tmp_path / "healkit.db", trace_raw=True) as hk:
        execution = hk.execute("trip", arguments={"city": "Lisbon", "days": 3, "token": KEY})
        trace = trace_of(hk, execution.trace_id)
    assert trace.metadata["arguments"]["token"] == KEY
    assert trace.metadata["raw"] is True


@TRACE_2
def test_sanitize_log_cleans_the_log(tmp_path: Path) -> None:
    with opened(tmp_path / "healkit.db", sanitize_log=True) as hk:
        hk.vault.add(
            "leaks", f"def leaks(password: str):\n    print('{KEY}')\n    raise ValueError('{KEY}')\n"
        )
        hk.vault.add("gives", "def gives():\n    return mcp.host.forecast(city='x', days=1)\n")
        leaks = hk.execute("leaks", arguments={"password": "hunter2-hunter2"})
        hk.execute("gives")
        with pytest.raises(ToolNotFound):
            hk.execute("nobody", arguments={"password": "hunter2-hunter2"})
        assert KEY in leaks.uncleaned.failure.evalue  # the caller's own copy
        path = hk.path
    for file in (path, path.with_name(path.name + "-wal")):
        if file.exists():
            content = file.read_bytes()
            assert b"hunter2" not in content
            # The code in the vault holds it, as what it is: code.
            assert content.count(KEY.encode()) <= 4, file


@TRACE_5
def test_bad_custom_rules_are_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(RulesInvalid):
        Healkit(tmp_path / "healkit.db", config=Config(sanitizer_allow=("(",)))
