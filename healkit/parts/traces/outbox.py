"""Traces in the database: on their way out, and collected.

**Outbox.** A trace is in the outbox, in the table where it is stored, as soon as its execution is over, because both
are one transaction. Several processes may send from one outbox. Each takes its traces on lease, in a transaction that
writes from its beginning; an old lease expires. A child waits for its parent, whose trace is made later than its own. A
clock that was set back must not stop anything for long: a time too far in the future counts as past.

**Collected.** Traces that clients sent are stored once each, and read back by page.
"""

from __future__ import annotations

import dataclasses
import re
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec
from sqlalchemy import (
    ColumnElement,
    Executable,
    and_,
    func,
    insert,
    literal,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError
from sqlalchemy.orm import Session, aliased

from healkit.core.contracts.execution import TRACES_COUNTED_MAX, HostIdentity, utc_now
from healkit.core.host import host_identity, is_alive
from healkit.core.store import vault_names
from healkit.core.store.database import Database
from healkit.core.store.models import (
    COLLECTED,
    LOG,
    REVISIONS,
    TOOLS,
    TRACES,
    CollectedTrace,
    ExecutionLog,
    TraceRow,
    upsert,
)
from healkit.parts.traces.contract import DeliveryVerdict, Waiting

#: The longest delay or lease.
LONGEST = timedelta(hours=2)
_PARKED_REASONS = 10
#: Sizes are read before any text: a hundred traces may be a hundred megabytes.
_SIZES = select(TRACES.c.trace_id, func.length(TRACES.c.wire))


class _Owner(msgspec.Struct, frozen=True):
    """Holder of a lease: a process, and which of its outboxes."""

    host: HostIdentity
    nonce: str


class OutboxState(msgspec.Struct, frozen=True):
    """Number of traces in each state, why traces are parked (reason → how many), and the last error.

    Each state is counted up to `TRACES_COUNTED_MAX`, newest first.
    """

    local: int = 0
    pending: int = 0
    sent: int = 0
    parked: int = 0
    parked_for: dict[str, int] = {}
    problem: str = ""


class Outbox:
    """Outbox of one database; safe to use from several threads and processes. Raises `DatabaseError`s only."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._owner = msgspec.json.encode(_Owner(host_identity(), secrets.token_hex(8))).decode()

    def claim(self, limit: int, max_bytes: int, lease_s: float) -> list[Waiting]:
        """Take up to `limit` traces on lease, parents first, those that waited longest first.

        Stops before `max_bytes` of wire text, but not before the first.
        """
        now = utc_now()
        with self._database.read() as session:  # usually there is nothing to do, which takes no lock
            if session.execute(_due(now).limit(1)).first() is None:
                return []
        with self._database.write() as session:
            chosen = _choose(session, now, limit, max_bytes)
            these = TRACES.c.trace_id.in_(chosen)
            lent = {"lease_owner": self._owner, "lease_until": now + timedelta(seconds=lease_s)}
            session.execute(update(TRACES).where(these).values(lent))
            columns = (TRACES.c.trace_id, TRACES.c.wire, TRACES.c.attempts, TRACES.c.attempted_at)
            rows = {row.trace_id: row for row in session.execute(select(*columns).where(these))}
        return [Waiting(*rows[trace_id]) for trace_id in chosen]

    def settle(self, verdicts: Sequence[DeliveryVerdict]) -> None:
        """Store the verdicts on leased traces, and release the traces."""
        now = utc_now()
        with self._database.write() as session:
            for verdict in verdicts:
                values: dict[str, Any] = {
                    "state": verdict.state,
                    "reason": verdict.reason,
                    "attempted_at": now,
                    "queued_at": now,
                    "next_attempt_at": now + min(timedelta(seconds=verdict.delay_s), LONGEST / 2),
                    "lease_owner": None,
                    "lease_until": None,
                }
                if verdict.counted:
                    values["attempts"] = TRACES.c.attempts + 1
                # Another process that took the trace over meanwhile, or replaced it, decides instead.
                mine = and_(TRACES.c.trace_id == verdict.trace_id, TRACES.c.lease_owner == self._owner)
                session.execute(update(TRACES).where(mine).values(values))

    def release(self) -> None:
        """Release the traces of this process, and of processes that died."""
        with self._database.read() as session:
            owners = session.scalars(
                select(TRACES.c.lease_owner)
                .where(TRACES.c.state == "pending", TRACES.c.lease_owner.is_not(None))
                .distinct()
            ).all()
        gone = [owner for owner in owners if owner == self._owner or _is_dead(owner)]
        if gone:
            with self._database.write() as session:
                given_back = {"lease_owner": None, "lease_until": None}
                session.execute(update(TRACES).where(TRACES.c.lease_owner.in_(gone)).values(given_back))

    def requeue(self, *, parked: bool = False, local: bool = False) -> int:
        """Make all waiting traces due now, and the parked or local ones too; return how many of those were added."""
        states = [*(["parked"] if parked else []), *(["local"] if local else [])]
        with self._database.write() as session:
            session.execute(update(TRACES).where(TRACES.c.state == "pending").values(next_attempt_at=None))
            again = {"state": "pending", "attempts": 0, "reason": "", "next_attempt_at": None}
            result: Any = session.execute(update(TRACES).where(TRACES.c.state.in_(states)).values(again))
            return int(result.rowcount)

    def state(self) -> OutboxState:
        """Count the traces by state, with reasons."""
        with self._database.read() as session:
            newest = {
                state: select(TRACES.c.reason)
                .where(TRACES.c.state == state)
                .order_by(TRACES.c.queued_at.desc())
                .limit(TRACES_COUNTED_MAX)
                .subquery()
                for state in ("local", "pending", "sent", "parked")
            }
            counts = {
                state: session.scalar(select(func.count()).select_from(rows))
                for state, rows in newest.items()
            }
            parked, pending = newest["parked"].c.reason, newest["pending"].c.reason
            reasons = session.execute(
                select(parked, func.count().label("many"))
                .group_by(parked)
                .order_by(func.count().desc())
                .limit(_PARKED_REASONS)
            ).all()
            problem = session.scalar(select(pending).where(pending != "").limit(1))
        return OutboxState(
            **{state: int(many or 0) for state, many in counts.items()},
            parked_for={str(reason): int(many) for reason, many in reasons},
            problem=problem or "",
        )

    def wire(self, trace_id: str) -> str | None:
        """Return a trace as it was stored; None if there is none with that id."""
        with self._database.read() as session:
            stored_wire: str | None = session.scalar(
                select(TRACES.c.wire).where(TRACES.c.trace_id == trace_id)
            )
            return stored_wire


def _choose(session: Session, now: datetime, limit: int, max_bytes: int) -> list[str]:
    """Choose the ids of due traces without a parent to wait for, then of those that waited only for these."""
    chosen: list[str] = []
    rows = session.execute(_due(now).limit(limit)).all()
    while rows and len(chosen) < limit:
        for trace_id, size in rows[: limit - len(chosen)]:
            max_bytes -= size
            if chosen and max_bytes < 0:
                return chosen
            chosen.append(trace_id)
        children = _is_due(now), TRACES.c.parent_trace_id.in_([trace_id for trace_id, _ in rows])
        rows = session.execute(_SIZES.where(*children).limit(limit)).all()
    return chosen


def _due(now: datetime) -> Any:
    parent = aliased(TraceRow)
    earlier = select(literal(1)).where(
        parent.trace_id == TRACES.c.parent_trace_id,  # type: ignore[arg-type]  # a comparison of columns, and no bool
        parent.state == "pending",  # type: ignore[arg-type]  # a comparison of columns, and no bool
    )
    running = select(literal(1)).where(
        LOG.c.trace_id == TRACES.c.parent_trace_id,
        ExecutionLog.status == "RUNNING",  # type: ignore[arg-type]  # a comparison of columns, and no bool
    )
    alone = and_(~earlier.exists(), ~running.exists())
    free = or_(TRACES.c.parent_trace_id.is_(None), alone)
    return _SIZES.where(_is_due(now), free).order_by(TRACES.c.queued_at, TRACES.c.id)


def _is_due(now: datetime) -> ColumnElement[bool]:
    return and_(
        TRACES.c.state == "pending", _past(TRACES.c.next_attempt_at, now), _past(TRACES.c.lease_until, now)
    )


def _past(column: ColumnElement[Any], now: datetime) -> ColumnElement[bool]:
    return or_(column.is_(None), column <= now, column > now + LONGEST)


def _is_dead(owner: str) -> bool:
    try:
        return is_alive(msgspec.json.decode(owner, type=_Owner).host) is False
    except msgspec.MsgspecError:
        return False


# Collected traces: stored once each, and read back by page.
#
# One request is one write transaction, which also reads the stored traces. So two clients that send the same trace at
# once cannot both insert it. A trace that the database itself refuses is left out by its savepoint; the others of the
# request are still stored.
#
# **The same id again.** An execution may be reported more than once: by a repeated delivery, or first as abandoned and
# then in full by its returned host. The same content is `known` and changes nothing. More detail (calls, decisions, an
# end that its host saw) replaces the stored trace. Less detail is an older report, also `known`. As much detail but
# other content is a `conflict`, and the first report stays. The result does not depend on the order of the reports,
# except between two that conflict.
#
# **The tool's id.** A capability's name ends in the beginning of its code's hash. So `tool_id` is only set if this
# registry has a revision of exactly that code, for that name and persona. Another tool of the same name is another
# tool. Until then, a trace is standalone. Each later arrival of the capability links those before it, and reading looks
# again.


#: The end of a capability's name: the first digits of its code's SHA-256, or `none`.
_HASH = re.compile(r"([0-9a-f]{4,64}|none)\Z")

#: Result of storing one trace.
Stored = Literal["stored", "known", "replaced", "conflict", "refused"]


@dataclasses.dataclass(frozen=True)
class Capability:
    """Capability, split into tool, persona and the beginning of its code's SHA-256."""

    name: str
    namespace: str
    action: str
    code_hash: str


@dataclasses.dataclass(frozen=True)
class Arrival:
    """Trace to store: its JSON, and the columns for finding it.

    detail: A measure of how much it reports, to compare two reports.
    digest: Equal for equal content.
    """

    trace_id: str
    parent_trace_id: str | None
    capability: Capability
    success: bool
    timestamp: datetime
    duration_ms: float
    detail: int
    digest: str
    wire: str


@dataclasses.dataclass(frozen=True)
class TracePage:
    """Page of collected traces, newest execution first; `next_cursor` is for the next page, None at the end."""

    rows: list[CollectedTrace]
    next_cursor: tuple[datetime, int] | None = None


class CollectedTraces:
    """Store of the traces that were sent to one database. All methods raise `DatabaseError`s only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def store(self, arrivals: Sequence[Arrival]) -> list[Stored]:
        """Store traces in their order, in one transaction; return the result of each. Raises with nothing stored."""
        with self._database.write() as session:
            stored_traces = {
                row.trace_id: (row.detail, row.digest)
                for row in session.execute(
                    select(COLLECTED.c.trace_id, COLLECTED.c.detail, COLLECTED.c.digest).where(
                        COLLECTED.c.trace_id.in_({arrival.trace_id for arrival in arrivals})
                    )
                )
            }
            tools = _tool_ids(session, {arrival.capability for arrival in arrivals})
            results = [_decide(arrival, stored_traces) for arrival in arrivals]
            refused = _write(session, arrivals, results, tools)
            _link_earlier(session, tools)
        lost = {arrivals[n].trace_id for n in refused}
        return ["refused" if a.trace_id in lost else v for a, v in zip(arrivals, results, strict=True)]

    def get(self, trace_id: str) -> CollectedTrace | None:
        """Return the trace of that id, or None."""
        with self._database.read() as session:
            row = session.scalars(select(CollectedTrace).where(COLLECTED.c.trace_id == trace_id)).first()
            return _linked(session, [row])[0] if row is not None else None

    def children(self, trace_id: str, limit: int = 1000) -> list[str]:
        """Return the ids of the traces that name it as their parent, oldest first."""
        statement = select(COLLECTED.c.trace_id).where(COLLECTED.c.parent_trace_id == trace_id)
        with self._database.read() as session:
            return list(
                session.scalars(statement.order_by(COLLECTED.c.timestamp, COLLECTED.c.id).limit(limit))
            )

    def page(
        self,
        *,
        tool: str | None = None,
        success: bool | None = None,
        since: datetime | None = None,
        limit: int = 50,
        cursor: tuple[datetime, int] | None = None,
    ) -> TracePage:
        """Return a page of traces that meet every given condition; `cursor` is `next_cursor` of the page before."""
        conditions: list[ColumnElement[bool]] = []
        if tool is not None:
            conditions.append(COLLECTED.c.tool_name == tool)
        if success is not None:
            # Spelled as in the partial index, so that the planner recognises its condition.
            conditions.append(text("success") if success else text("NOT success"))  # type: ignore[arg-type]  # a text stands for a condition
        if since is not None:
            conditions.append(COLLECTED.c.timestamp >= since)
        if cursor is not None:
            conditions.append(tuple_(COLLECTED.c.timestamp, COLLECTED.c.id) < tuple_(*cursor))
        newest_first = select(CollectedTrace).where(*conditions)
        newest_first = newest_first.order_by(COLLECTED.c.timestamp.desc(), COLLECTED.c.id.desc())
        with self._database.read() as session:
            rows = list(session.scalars(newest_first.limit(limit + 1)))
            traces = _linked(session, rows[:limit])
        last = traces[-1] if len(rows) > limit else None
        return TracePage(traces, None if last is None else (last.timestamp, last.id or 0))

    def answers(self) -> bool:
        """Return True when the database can be read; raise a `DatabaseError` otherwise."""
        with self._database.read() as session:
            session.execute(select(COLLECTED.c.id).limit(1))
        return True


def capability_of(name: str) -> Capability:
    """Split `org.project.namespace.action.hash`; any other text, such as a UUID, names no tool here."""
    parts = name.split(".")
    if len(parts) != 5 or not all(parts) or not _HASH.match(parts[4]):
        return Capability(name, "", name, "")
    return Capability(name, parts[2], parts[3], parts[4])


def _decide(arrival: Arrival, known: dict[str, tuple[int, str]]) -> Stored:
    """Decide what to do with a trace; `known` (id → detail and digest) is updated for the next one."""
    before = known.get(arrival.trace_id)
    if before is not None:
        detail, digest = before
        if digest == arrival.digest or arrival.detail < detail:
            return "known"
        if arrival.detail == detail:
            return "conflict"
    known[arrival.trace_id] = (arrival.detail, arrival.digest)
    return "stored" if before is None else "replaced"


def _write(
    session: Session, arrivals: Sequence[Arrival], results: Sequence[Stored], tools: dict[Capability, int]
) -> set[int]:
    """Insert and replace as decided; return the numbers of those that the database refused."""
    now = utc_now()
    rows = [(n, _values(arrivals[n], tools, now)) for n, result in enumerate(results) if result == "stored"]
    refused: set[int] = set()
    if rows and not _attempt(session, insert(COLLECTED), [values for _, values in rows]):
        # One of them is at fault; insert each alone to find out which.
        refused |= {n for n, values in rows if not _attempt(session, insert(COLLECTED), values)}
    for n, result in enumerate(results):
        # With the next number: whoever reads the traces in order sees what came now.
        values = _values(arrivals[n], tools, now)
        if result == "replaced" and not _attempt(session, _replacing(session), values):
            refused.add(n)
    return refused


def _replacing(session: Session) -> Executable:
    statement: Executable = upsert(session.get_bind().dialect.name, COLLECTED, ["trace_id"])
    return statement


def _attempt(session: Session, statement: Executable, values: list[dict[str, Any]] | dict[str, Any]) -> bool:
    """Run a statement in its own savepoint; return False if the database refused the values permanently."""
    first: Exception | None = None
    try:
        with session.begin_nested():
            try:
                session.execute(statement, values)
            except Exception as error:
                first = error  # leaving the savepoint may fail too, with a less useful error
                raise
    except Exception as error:  # noqa: BLE001 - refusals and failures are separated below
        if not _is_refusal(first or error):
            raise first or error from None
        return False
    return True


def _is_refusal(error: Exception) -> bool:
    """Return True for an error about the value, which will never be accepted, not about the database's state.

    A value that the driver cannot even encode arrives as a `StatementError` without a driver's error in it. No other
    error may be retried here. After some of them (a full disk), SQLite has ended the transaction itself, and later
    statements would be committed one by one.
    """
    if isinstance(error, DBAPIError):
        return isinstance(error, IntegrityError | DataError)
    return isinstance(error, StatementError | ValueError | OverflowError)


def _values(arrival: Arrival, tools: dict[Capability, int], now: datetime) -> dict[str, Any]:
    return {
        "trace_id": arrival.trace_id,
        "parent_trace_id": arrival.parent_trace_id,
        "capability_id": arrival.capability.name,
        "tool_name": arrival.capability.action,
        "tool_id": tools.get(arrival.capability),
        "success": arrival.success,
        "timestamp": arrival.timestamp,
        "duration_ms": arrival.duration_ms,
        "detail": arrival.detail,
        "digest": arrival.digest,
        "wire": arrival.wire,
        "received_at": now,
    }


def _tool_ids(session: Session, capabilities: Iterable[Capability]) -> dict[Capability, int]:
    """Map each capability to the id of the tool in this registry that has exactly one code with that beginning."""
    wanted = [capability for capability in capabilities if capability.code_hash]
    if not wanted:
        return {}
    now = vault_names.current_names(session, sorted({capability.action for capability in wanted}))
    statement = (
        select(TOOLS.c.id, TOOLS.c.tool_name, TOOLS.c.target_persona, REVISIONS.c.code_hash)
        .join(
            REVISIONS,
            (REVISIONS.c.tool_name == TOOLS.c.tool_name)
            & (REVISIONS.c.target_persona == TOOLS.c.target_persona),
        )
        .where(TOOLS.c.tool_name.in_(set(now.values())))
    )
    rows = session.execute(statement).all()
    tool_ids: dict[Capability, int] = {}
    for capability in wanted:
        tool = now[capability.action], capability.namespace
        of_tool = [row for row in rows if (row.tool_name, row.target_persona) == tool]
        matching_ids = {
            row.code_hash: row.id for row in of_tool if row.code_hash.startswith(capability.code_hash)
        }
        if len(matching_ids) == 1:  # of few digits that begin two hashes, it is unknown which was run
            tool_ids[capability] = next(iter(matching_ids.values()))
    return tool_ids


def _link_earlier(session: Session, tools: dict[Capability, int]) -> None:
    """Set the tool of stored standalone traces of these capabilities, after it has become known."""
    for capability, tool_id in tools.items():
        standalone = (COLLECTED.c.capability_id == capability.name) & COLLECTED.c.tool_id.is_(None)
        session.execute(update(COLLECTED).where(standalone).values(tool_id=tool_id))


def _linked(session: Session, rows: list[CollectedTrace]) -> list[CollectedTrace]:
    """Return the rows, with the tool of standalone ones looked up again; nothing is written."""
    unknown = {row.capability_id for row in rows if row.tool_id is None}
    tools = _tool_ids(session, {capability_of(name) for name in unknown})
    ids = {capability.name: tool_id for capability, tool_id in tools.items()}
    session.expunge_all()
    for row in rows:
        if row.tool_id is None:
            row.tool_id = ids.get(row.capability_id)
    return rows
