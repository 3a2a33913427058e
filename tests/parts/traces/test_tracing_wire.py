"""Wire form of a trace: exactly these names, nothing believed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from healkit.core.contracts.execution import new_trace_id, utc_now
from healkit.errors import TraceInvalid
from healkit.parts.traces.contract import (
    NO_ID,
    BranchDecision,
    ExecutionTrace,
    TaskResult,
    TraceFault,
    capability_id_of,
    encode_trace,
    read_batch,
    read_trace,
)

TRACE_1 = pytest.mark.requirement("TRACE-1")


def sample() -> ExecutionTrace:
    task = TaskResult("t1", "host:rate", {"day": 3}, 1.5, 0.25, success=True, timestamp=utc_now())
    return ExecutionTrace(
        id=new_trace_id(),
        parent_id=new_trace_id(),
        capability_id=capability_id_of("local", "default", "teacher", "fibonacci", "ab" * 32),
        success=True,
        error=None,
        duration_ms=12.5,
        timestamp=utc_now(),
        task_results=[task],
        decisions=[BranchDecision("size", "large", "n > 3")],
        metadata={"hidden": {}},
    )


def damaged(**changes: Any) -> bytes:
    """Return the sample with fields replaced, or taken out with `...`."""
    plain = json.loads(encode_trace(sample())) | changes
    return json.dumps({name: value for name, value in plain.items() if value is not ...}).encode()


@TRACE_1
def test_the_wire_form_has_exactly_the_names_of_the_contract() -> None:
    plain = json.loads(encode_trace(sample()))
    assert list(plain) == [
        "id", "parentId", "capabilityId", "success", "error", "durationMs", "timestamp", "taskResults", "decisions",
        "metadata",
    ]  # fmt: skip
    assert list(plain["taskResults"][0]) == [
        "taskId", "tool", "args", "result", "durationMs", "success", "timestamp",
    ]  # fmt: skip
    assert list(plain["decisions"][0]) == ["nodeId", "outcome", "condition"]
    assert plain["capabilityId"] == "local.default.teacher.fibonacci.abababababab"
    assert plain["timestamp"].endswith("Z")
    assert plain["id"][14] == "7"


@TRACE_1
def test_a_capability_has_five_parts_for_any_names() -> None:
    assert capability_id_of("a.b", "", "p é", "x/y:z", None) == "a_b._.p_é.x_y_z.none"
    for odd in ("x" * 999, "\ud800", "a\nb", "😀", ""):
        name = capability_id_of("a.b", "", "p é", odd, "0" * 64)
        assert read_trace(damaged(capabilityId=name)).capability_id == name


@TRACE_1
def test_what_is_written_is_read_back_the_same() -> None:
    trace = sample()
    assert read_trace(encode_trace(trace)) == trace


@TRACE_1
@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"id": "x"}, "$.id"),
        ({"id": "00000000-0000-0000-8000-000000000000"}, "$.id"),
        ({"id": new_trace_id() + "\n"}, "$.id"),
        ({"id": ...}, "'id'"),
        ({"parentId": "../../etc"}, "$.parentId"),
        ({"capabilityId": ""}, "$.capabilityId"),
        ({"capabilityId": "a" * 1001}, "$.capabilityId"),
        ({"capabilityId": "a.b.c.d.none\n"}, "$.capabilityId"),
        ({"success": 1}, "$.success"),
        ({"durationMs": -1}, "$.durationMs"),
        ({"durationMs": "1"}, "$.durationMs"),
        ({"timestamp": "2026-01-01T00:00:00"}, "$.timestamp"),
        ({"timestamp": "yesterday"}, "$.timestamp"),
        ({"taskResults": {}}, "$.taskResults"),
        ({"taskResults": [{"taskId": "1"}]}, "$.taskResults[0]"),
        ({"decisions": [{"nodeId": "a" * 1001, "outcome": ""}]}, "$.decisions[0].nodeId"),
        ({"metadata": []}, "$.metadata"),
    ],
)
def test_a_bad_trace_is_refused_with_the_place_of_its_fault(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(TraceInvalid) as caught:
        read_trace(damaged(**changes))
    assert place in str(caught.value)


@TRACE_1
def test_a_bad_trace_in_a_batch_does_not_lose_the_others() -> None:
    good = sample()
    items = [encode_trace(good), damaged(success="yes"), b"7", b'{"id": "\\ud800"}'.replace(b"\\ud800", b"x")]
    for body in (b"[%s]" % b",".join(items), b'{"traces": [%s]}' % b",".join(items)):
        read = read_batch(body, 100)
        assert read[0] == good
        faults = [item for item in read if isinstance(item, TraceFault)]
        assert [(fault.index, fault.code, fault.retryable) for fault in faults] == [
            (1, "TRACE_INVALID", False), (2, "TRACE_INVALID", False), (3, "TRACE_INVALID", False),
        ]  # fmt: skip
        assert faults[0].id == json.loads(items[1])["id"]
        assert faults[1].id is faults[2].id is None


#: A trace as the seed document's client makes it: TypeScript's names, `Date.now()`, and nothing that is not known.
SEED = {"toolId": "fs:read", "success": True, "durationMs": 12, "timestamp": 1764062400123}


@TRACE_1
@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({}, "capability_id", "fs:read"),
        ({"capabilityId": "a.b.c.d.none"}, "capability_id", "a.b.c.d.none"),  # the wire form's own name wins
        ({}, "timestamp", datetime(2025, 11, 25, 9, 20, 0, 123000, tzinfo=UTC)),
        ({"timestamp": None, "executedAt": "2026-01-01T00:00:00.5Z"}, "timestamp", datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
        ({"timestamp": None, "startedAt": 1764062400123.0}, "timestamp", datetime(2025, 11, 25, 9, 20, 0, 123000, tzinfo=UTC)),
        ({}, "id", NO_ID),
        ({"traceId": "6C0AA6B4-2A52-4A3B-9D8E-0D4ED71B6A3A"}, "id", "6c0aa6b4-2a52-4a3b-9d8e-0d4ed71b6a3a"),
        ({"parentTraceId": "6c0aa6b4-2a52-4a3b-9d8e-0d4ed71b6a3a"}, "parent_id", "6c0aa6b4-2a52-4a3b-9d8e-0d4ed71b6a3a"),
        ({"success": False, "errorMessage": "ENOENT"}, "error", "ENOENT"),
        ({"parentId": None, "error": None, "taskResults": None, "decisions": None, "metadata": None}, "task_results", []),
        ({"decisions": [{"nodeId": "n", "outcome": "true"}]}, "decisions", [BranchDecision("n", "true", "")]),
    ],
)  # fmt: skip
def test_a_batch_may_have_other_names_and_leave_fields_out(
    changes: dict[str, Any], field: str, value: Any
) -> None:
    """C1: `id`, `parentId`, `error`, `decisions` and `taskId` were required, `toolId` and epoch times refused."""
    (read,) = read_batch(json.dumps([SEED | changes]).encode(), 100)
    assert isinstance(read, ExecutionTrace), read
    assert getattr(read, field) == value


@TRACE_1
def test_calls_of_a_batch_are_numbered_where_they_have_no_id() -> None:
    calls = [
        {"tool": "fs:read", "arguments": {"path": "a"}, "result": "x", "success": True, "durationMs": 1},
        {"toolId": "fs:stat", "success": False, "timestamp": 1764062400200, "taskId": "t7"},
    ]
    (read,) = read_batch(json.dumps([SEED | {"taskResults": calls}]).encode(), 100)
    assert isinstance(read, ExecutionTrace), read
    first, second = read.task_results
    assert (first.task_id, first.tool, first.args, first.timestamp) == (
        "t1", "fs:read", {"path": "a"}, read.timestamp,
    )  # fmt: skip
    assert (second.task_id, second.tool, second.args, second.duration_ms) == ("t7", "fs:stat", {}, None)
    assert second.timestamp.microsecond == 200_000


@TRACE_1
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"timestamp": 1764062400}, "in seconds: multiply it by 1000"),
        ({"timestamp": 1764062400123000}, "between the years 2000 and 2100"),
        ({"timestamp": True}, "$.timestamp"),
        ({"timestamp": "1764062400123"}, "$.timestamp"),
        ({"timestamp": None}, "`timestamp`"),
        ({"toolId": None}, "`capabilityId`"),
        ({"toolId": 7}, "$.capabilityId"),
        ({"id": ""}, "$.id"),
        ({"durationMs": None}, "`durationMs`"),
        ({"success": None}, "`success`"),
        ({"taskResults": [{"tool": "fs:read", "success": True, "timestamp": 3}]}, "$.taskResults[0].timestamp"),
        ({"taskResults": [{"tool": "fs:read"}]}, "$.taskResults[0]"),
        ({"taskResults": [3]}, "$.taskResults[0]"),
        ({"decisions": 3}, "$.decisions"),
    ],
)  # fmt: skip
def test_a_fault_in_another_clients_trace_is_named_with_its_place(changes: dict[str, Any], said: str) -> None:
    (read,) = read_batch(json.dumps([SEED | changes]).encode(), 100)
    assert isinstance(read, TraceFault)
    assert said in read.message


@TRACE_1
@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"3", b"{", b'{"traces": 3}', b'["\\ud800"]', b"[" * 100_000, b"\xff\xfe", b"[NaN]", b"[1e999]",
     b"[" + b"1," * 200 + b"1]"],
)  # fmt: skip
def test_an_invalid_batch_is_refused(body: bytes) -> None:
    try:
        read = read_batch(body, 100)
    except TraceInvalid:
        return
    assert all(isinstance(item, TraceFault) for item in read)


@pytest.mark.slow
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_value_in_any_field_raises_trace_invalid_only(value: Any) -> None:
    for name in ExecutionTrace.__struct_encode_fields__:
        plain = msgspec.json.decode(encode_trace(sample())) | {name: value}
        try:
            read_batch(json.dumps([plain]).encode(), 100)
        except TraceInvalid:
            continue
