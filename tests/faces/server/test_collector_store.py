"""Storage of collected traces, linked to tools and parents."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from collector_samples import CAPABILITY, trace

from healkit.core.contracts.execution import new_trace_id, utc_now
from healkit.core.secrets.cleaner import Verbatim
from healkit.core.store.database import Database
from healkit.core.store.entries import code_hash
from healkit.core.store.vault import Vault
from healkit.errors import DatabaseLocked
from healkit.parts.collect.service import Ingest
from healkit.parts.traces.outbox import Arrival, CollectedTraces, capability_of

TRACE_4 = pytest.mark.requirement("TRACE-4")


def arrival(**changes: Any) -> Arrival:
    """Make a trace as the store takes it."""
    values: dict[str, Any] = {
        "trace_id": new_trace_id(), "parent_trace_id": None, "capability": capability_of(CAPABILITY), "success": True,
        "timestamp": utc_now(), "duration_ms": 1.5, "detail": 0, "digest": "a", "wire": "{}",
    }  # fmt: skip
    return Arrival(**{**values, **changes})


def take(store: CollectedTraces, *traces: dict[str, Any]) -> Any:
    """Take them in as a request would."""
    return Ingest(store, Verbatim(), 10_240).store(json.dumps(traces).encode())


def tool_of(store: CollectedTraces, sent: dict[str, Any]) -> int | None:
    """Return the tool that a stored trace is linked to."""
    row = store.get(sent["id"])
    return row.tool_id


@TRACE_4
def test_a_trace_is_linked_to_the_tool_with_its_code(database: Database, store: CollectedTraces) -> None:
    vault = Vault(database)
    code = "def double(x): return 2 * x"
    early, other, late = trace(), trace(), trace()
    digest = "0" * 12
    take(store, {**early, "capabilityId": f"local.default.default.double.{digest}"})
    entry = vault.add("double", code)
    name = f"local.default.default.double.{entry.code_hash[:12]}"
    take(store, {**other, "capabilityId": name.replace(".default.double", ".teacher.double")})
    take(store, {**late, "capabilityId": name})
    assert [tool_of(store, each) for each in (early, other, late)] == [None, None, 1]
    # Another persona's tool with this code, a new revision of it: each is found by its own code.
    vault.add("double", code, persona="teacher")
    assert tool_of(store, other) == 2
    vault.patch("double", "def double(x): return x + x", reason="again")
    take(store, late_again := {**trace(), "capabilityId": name})
    assert tool_of(store, late_again) == 1


@TRACE_4
def test_any_capability_is_stored_and_a_short_hash_is_resolved_where_it_is_clear(
    database: Database, store: CollectedTraces
) -> None:
    """C4: four digits of a hash, a UUID and an unreadable name were refused."""
    vault = Vault(database)
    entry = vault.add("double", "def double(x): return 2 * x")
    short = f"local.default.default.double.{entry.code_hash[:4]}"
    names = [short, "0b7c1a52-5f6e-4b1c-9d52-3f0e6f7a8b9c", "not a name at all", "a.b.c.d"]
    sent = [{**trace(), "capabilityId": name} for name in names]
    assert take(store, *sent).receipt.stored == 4
    assert [tool_of(store, each) for each in sent] == [1, None, None, None]
    assert {row.capability_id for row in store.page().rows} == set(names)
    # Another code of the tool that begins with the same digits: which of them was run is unknown.
    tries = (f"def double(x): return {n} * x" for n in itertools.count(3))
    vault.patch("double", next(code for code in tries if code_hash(code)[:4] == entry.code_hash[:4]))
    take(store, late := {**trace(), "capabilityId": short})
    assert tool_of(store, late) is None


@TRACE_4
def test_a_trace_is_linked_by_a_former_name_and_after_a_removal(
    database: Database, store: CollectedTraces
) -> None:
    """C4: old traces keep resolving to a tool that was renamed, or removed."""
    vault = Vault(database)
    entry = vault.add("double", "def run(x): return 2 * x")
    name = f"local.default.default.double.{entry.code_hash[:12]}"
    for change in (lambda: vault.rename("double", "twice"), lambda: vault.remove("twice")):
        change()
        arrived = trace()
        take(store, {**arrived, "capabilityId": name})
        assert tool_of(store, arrived) == 1


@TRACE_4
def test_a_child_may_arrive_before_its_parent(store: CollectedTraces) -> None:
    parent, children = trace(), []
    for _ in range(3):
        children.append(trace(parentId=parent["id"]))
        take(store, children[-1])
    assert store.get(parent["id"]) is None
    take(store, parent)
    assert store.children(parent["id"]) == [child["id"] for child in children]


@TRACE_4
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_most_detailed_report_is_kept_in_any_order(
    database: Database, store: CollectedTraces, order: tuple[int, ...]
) -> None:
    one = new_trace_id()
    accounts = [arrival(trace_id=one, detail=n, digest=str(n), wire=f'{{"n":{n}}}') for n in range(3)]
    for number in order:
        assert store.store([accounts[number]])[0] in {"stored", "replaced", "known"}
    row = store.get(one)
    assert (row.detail, row.wire) == (2, '{"n":2}')


def test_the_same_rules_hold_within_a_batch(store: CollectedTraces) -> None:
    one = arrival()
    changes = ({}, {"detail": 2, "digest": "b"}, {"detail": 2, "digest": "c"})
    again, fuller, other = (Arrival(**{**vars(one), **change}) for change in changes)
    outcomes = store.store([one, again, fuller, other, again])
    assert outcomes == ["stored", "known", "replaced", "conflict", "known"]
    assert len(store.page().rows) == 1


@pytest.mark.requirement("SCALE-1")
def test_a_refused_trace_does_not_cost_the_others(store: CollectedTraces) -> None:
    odd = arrival(wire="\ud800")
    batch = [arrival(), odd, arrival(duration_ms=None), arrival(), odd]
    assert store.store(batch) == ["stored", "refused", "refused", "stored", "refused"]
    assert {row.trace_id for row in store.page().rows} == {batch[0].trace_id, batch[3].trace_id}


@TRACE_4
def test_a_failed_commit_stores_nothing(database: Database, store: CollectedTraces) -> None:
    with database.write(), pytest.raises(DatabaseLocked):
        store.store([arrival(), arrival()])
    assert store.page().rows == []


def test_long_numbers_are_read_back_exactly(store: CollectedTraces) -> None:
    one = trace(metadata={"big": 12345678901234567890123, "small": 1e-300, "tasks": -0.0})
    take(store, one)
    row = store.get(one["id"])
    assert json.loads(row.wire)["metadata"] == one["metadata"]
