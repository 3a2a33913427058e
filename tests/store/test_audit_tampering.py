"""Tampering with the audit through a second connection.

Its triggers are dropped; the tampering is always found.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest
from audit_samples import audit_of, filled, head_at, unguarded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from healkit.contracts.audit import AnchoredHead, AuditVerification
from healkit.store.audit import COLUMNS, Audit
from healkit.store.database import Database

pytestmark = pytest.mark.requirement("DECIDE-3")
EXECUTIONS = ("one", "two", "one", "three", "two", "one", "two", "three", "one", "one")
MANY = len(EXECUTIONS)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(COLUMNS, TEXTS),
    "seq": st.integers(-5, 20),
    "event_seq": st.integers(-5, 20),
    "timestamp": st.datetimes().map(lambda moment: f"{moment:%Y-%m-%d %H:%M:%S.%f}"),
    "hash": st.text("0123456789abcdef", min_size=64, max_size=64),
}
SEARCHED = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def seeded(sqlite_database: Database) -> tuple[Path, AnchoredHead]:
    """Fill an audit; return its file, which each example copies, and the head that a manifest has."""
    audit = audit_of(sqlite_database)
    entries = filled(audit, *EXECUTIONS)
    anchor = AnchoredHead("one", head_at(audit, entries, MANY))
    audit.close()
    path = sqlite_database.path
    assert path is not None
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path, anchor


def verified_after(
    seeded: tuple[Path, AnchoredHead], *statements: tuple[str, tuple[Any, ...]]
) -> AuditVerification:
    """Verify a copy of the audit after these statements."""
    path, anchor = seeded
    with contextlib.closing(Database(shutil.copy(path, path.with_name(f"{uuid.uuid4()}.db")))) as copy:
        with unguarded(copy) as connection:
            for statement, values in statements:
                connection.execute(statement, values)
        return audit_of(copy, anchor).verify()


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read the entries as they are stored."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM traceauditentry ORDER BY id")]


@pytest.mark.slow
@SEARCHED
@given(place=st.integers(1, MANY), column=st.sampled_from(COLUMNS[1:]), data=st.data())
def test_a_changed_entry_is_named(
    seeded: tuple[Path, AnchoredHead], place: int, column: str, data: st.DataObject
) -> None:
    rows = rows_of(seeded[0])
    value = data.draw(VALUES[column].filter(lambda value: value != rows[place - 1][column]))
    changed = {**rows[place - 1], column: value}
    taken = {(row["execution_id"], row["seq"]) for row in rows if row["id"] != place}
    if (changed["execution_id"], changed["seq"]) in taken:
        return  # the database refuses that
    found = verified_after(seeded, (f"UPDATE traceauditentry SET {column} = ? WHERE id = ?", (value, place)))
    assert found.fault is not None
    assert found.fault.position == place
    assert found.fault.kind == "changed"


@pytest.mark.slow
@SEARCHED
@given(places=st.sets(st.integers(1, MANY), min_size=1))
def test_removed_entries_are_missed(seeded: tuple[Path, AnchoredHead], places: set[int]) -> None:
    found = verified_after(
        seeded, *(("DELETE FROM traceauditentry WHERE id = ?", (place,)) for place in places)
    )
    assert found.fault is not None
    assert found.fault.position == min(places)
    at_the_end = min(places) > MANY - len(places)
    assert found.fault.kind == ("cut_off" if at_the_end else "missing")


@pytest.mark.slow
@SEARCHED
@given(places=st.sets(st.integers(1, MANY), min_size=1, max_size=MANY - 1))
def test_removed_entries_are_missed_where_the_rest_was_numbered_anew(
    seeded: tuple[Path, AnchoredHead], places: set[int]
) -> None:
    kept = [place for place in range(1, MANY + 1) if place not in places]
    moves = [
        ("UPDATE traceauditentry SET id = ? WHERE id = ?", (new, old))
        for new, old in enumerate(kept, start=1)
    ]
    removed = [("DELETE FROM traceauditentry WHERE id = ?", (place,)) for place in places]
    found = verified_after(seeded, *removed, *moves)
    assert found.fault is not None
    assert found.fault.position == min(places)


@pytest.mark.slow
@SEARCHED
@given(
    order=st.permutations(range(1, MANY + 1)).filter(lambda order: list(order) != list(range(1, MANY + 1)))
)
def test_reordered_entries_are_found(seeded: tuple[Path, AnchoredHead], order: list[int]) -> None:
    aside = [("UPDATE traceauditentry SET id = id + 1000", ())]
    back = [
        ("UPDATE traceauditentry SET id = ? WHERE id = ?", (place, old + 1000))
        for place, old in enumerate(order, 1)
    ]
    found = verified_after(seeded, *aside, *back)
    assert found.fault is not None
    first_moved = next(place for place, old in enumerate(order, 1) if place != old)
    assert (found.fault.kind, found.fault.position) == ("reordered", first_moved)


@pytest.mark.slow
@SEARCHED
@given(left=st.integers(0, MANY - 1))
def test_a_cut_off_tail_is_found(seeded: tuple[Path, AnchoredHead], left: int) -> None:
    found = verified_after(seeded, ("DELETE FROM traceauditentry WHERE id > ?", (left,)))
    assert found.fault is not None
    assert (found.fault.kind, found.fault.position) == ("cut_off", left + 1)


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("UPDATE traceauditentry SET description = CAST(x'ff00fe' AS TEXT) WHERE id = 4", "changed"),
        ("UPDATE traceauditentry SET tool_params = x'7b7d' WHERE id = 4", "changed"),
        ("UPDATE traceauditentry SET id = -4 WHERE id = 4", "reordered"),
        ("UPDATE traceauditchain SET chain = 'other'", "reordered"),
        ("DELETE FROM traceauditchain", "reordered"),
    ],
)
def test_what_no_program_would_write_is_found(
    seeded: tuple[Path, AnchoredHead], statement: str, kind: str
) -> None:
    drop = [(f"DROP TRIGGER traceauditchain_{event}", ()) for event in ("update", "delete")]
    found = verified_after(seeded, *drop, (statement, ()))
    assert found.fault is not None
    assert found.fault.kind == kind


@pytest.mark.parametrize(
    ("statement", "kind", "position"),
    [
        ("UPDATE traceauditentry SET description = 'other' WHERE id = 2", "changed", 2),
        ("UPDATE traceauditentry SET timestamp = '2001-01-01' WHERE id = 3", "changed", 3),
        ("DELETE FROM traceauditentry WHERE id = 2", "missing", 2),
        ("DELETE FROM traceauditentry WHERE id > 2", "cut_off", 3),
    ],
)
def test_tampering_is_found_on_each_kind_of_database(
    database: Database, statement: str, kind: str, position: int
) -> None:
    audit: Audit = audit_of(database)
    entries = filled(audit, "one", "two", "one", "two")
    with unguarded(database) as connection:
        connection.execute(statement)
    found = audit_of(database, AnchoredHead("one", head_at(audit, entries, 4))).verify()
    audit.close()
    assert found.fault is not None
    assert (found.fault.kind, found.fault.position) == (kind, position)


def test_a_head_that_was_kept_elsewhere_finds_a_chain_that_was_written_anew(
    sqlite_database: Database,
) -> None:
    audit = audit_of(sqlite_database)
    filled(audit, "one", "two")
    kept = audit.head()
    filled(audit, "three")
    assert audit.verify(kept).ok
    assert audit.verify(kept).anchors == 0
    longer = msgspec.structs.replace(kept, entries=9)
    fault = audit.verify(longer).fault
    assert fault is not None
    assert (fault.kind, "the head that was kept elsewhere says 9" in fault.message) == ("cut_off", True)
    other = msgspec.structs.replace(kept, hash="0" * 64)
    fault = audit.verify(other).fault
    assert fault is not None
    assert (fault.kind, fault.position) == ("rewritten", 2)
    fault = audit.verify(msgspec.structs.replace(kept, chain="0" * 64)).fault
    assert fault is not None
    assert fault.kind == "rewritten"
    audit.close()
