"""Outbox: traces on their way to a collector.

A trace is in it, in the table where it is stored, from the moment its execution is over, because both are one
transaction. Several processes may empty one outbox: each takes what it sends on lease, in a transaction that writes
from its beginning, and a lease that is not given back runs out. A child waits for its parent, whose trace is made later
than its own.

A clock that was set back must not stop anything for long: a time further ahead than any that is ever set counts as
past.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, and_, func, literal, or_, select, update
from sqlalchemy.orm import Session, aliased

from healkit.contracts.execution import HostIdentity, host_identity, is_alive, utc_now
from healkit.contracts.traces import DeliveryVerdict, OutboxState, Waiting
from healkit.store.database import Database
from healkit.store.models import LOG, TRACES, ExecutionLog, TraceRow

#: The longest delay or lease.
LONGEST = timedelta(hours=2)
_PARKED_REASONS = 10
#: Sizes are read before any text: a hundred traces may be a hundred megabytes.
_SIZES = select(TRACES.c.trace_id, func.length(TRACES.c.wire))


class _Owner(msgspec.Struct, frozen=True):
    """Holder of a lease: a process, and which of its outboxes."""

    host: HostIdentity
    nonce: str


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
        """Store the verdicts on claimed traces, and give the traces back."""
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
        """Give back the traces that this process, and processes that died, hold."""
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
        """Make all waiting traces due now, and the parked or local ones too; return how many of those came back."""
        states = [*(["parked"] if parked else []), *(["local"] if local else [])]
        with self._database.write() as session:
            session.execute(update(TRACES).where(TRACES.c.state == "pending").values(next_attempt_at=None))
            again = {"state": "pending", "attempts": 0, "reason": "", "next_attempt_at": None}
            came: Any = session.execute(update(TRACES).where(TRACES.c.state.in_(states)).values(again))
            return int(came.rowcount)

    def state(self) -> OutboxState:
        """Count the traces by state, with reasons."""
        with self._database.read() as session:
            counts = session.execute(select(TRACES.c.state, func.count()).group_by(TRACES.c.state)).all()
            reasons = session.execute(
                select(TRACES.c.reason, func.count().label("many"))
                .where(TRACES.c.state == "parked")
                .group_by(TRACES.c.reason)
                .order_by(func.count().desc())
                .limit(_PARKED_REASONS)
            ).all()
            problem = session.scalar(
                select(TRACES.c.reason)
                .where(TRACES.c.state == "pending", TRACES.c.reason != "")
                .order_by(TRACES.c.queued_at.desc())
                .limit(1)
            )
        return OutboxState(
            **{str(state): int(many) for state, many in counts},
            parked_for={str(reason): int(many) for reason, many in reasons},
            problem=problem or "",
        )

    def wire(self, trace_id: str) -> str | None:
        """Return a trace as it was stored; None where there is none of that id."""
        with self._database.read() as session:
            found: str | None = session.scalar(select(TRACES.c.wire).where(TRACES.c.trace_id == trace_id))
            return found


def _choose(session: Session, now: datetime, limit: int, max_bytes: int) -> list[str]:
    """Choose the ids of due traces without a parent to wait for, then of those that waited only for these."""
    chosen: list[str] = []
    found = session.execute(_due(now).limit(limit)).all()
    while found and len(chosen) < limit:
        for trace_id, size in found[: limit - len(chosen)]:
            max_bytes -= size
            if chosen and max_bytes < 0:
                return chosen
            chosen.append(trace_id)
        children = _is_due(now), TRACES.c.parent_trace_id.in_([trace_id for trace_id, _ in found])
        found = session.execute(_SIZES.where(*children).limit(limit)).all()
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
        TRACES.c.state == "pending",
        _past(TRACES.c.next_attempt_at, now),
        _past(TRACES.c.lease_until, now),
    )


def _past(column: Any, now: datetime) -> ColumnElement[bool]:
    return or_(column.is_(None), column <= now, column > now + LONGEST)


def _is_dead(owner: str) -> bool:
    try:
        return is_alive(msgspec.json.decode(owner, type=_Owner).host) is False
    except msgspec.MsgspecError:
        return False
