"""Filters of the log, as conditions on its rows.

The conditions on `status` are literals in the SQL text: a partial index serves only where the planner can prove
its condition. SQLite plans again for a bound value; a generic plan of PostgreSQL cannot.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, time

from sqlalchemy import ColumnElement, literal_column, or_

from healkit.contracts.records import TRIED_ORIGINS
from healkit.store.rows import LOG
from healkit.store.statements import escaped

STATUSES = ("RUNNING", "SUCCESS", "FAILURE")

Moment = datetime | date | str


@dataclasses.dataclass(frozen=True)
class Filters:
    """Which rows are meant; all that are given must hold.

    since, until: an aware time (a naive one is local), a date (local midnight), or either in ISO 8601; until is
    exclusive. text: words in the traceback (`store.words` says what matches). trace: that execution and the calls it
    made of other tools. run: all executions of that run.
    origin: who asked for it. tried: whether runs that only try code out (trials, searches) are meant too; who names
    their origin means them in any case.
    """

    status: str | None = None
    tool: str | None = None
    persona: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    text: str | None = None
    trace: str | None = None
    fingerprint: str | None = None
    run: str | None = None
    origin: str | None = None
    tried: bool = True

    def __post_init__(self) -> None:
        """Write what no database takes as it is written when it is stored (`store.statements.storable`)."""
        for name in ("tool", "persona", "text", "trace", "fingerprint", "run", "origin"):
            value = getattr(self, name)
            if value is not None and (not value.isascii() or "\x00" in value):
                object.__setattr__(self, name, escaped(value))

    def conditions(self) -> list[ColumnElement[bool]]:
        """All of them but `text`, which is looked for in another way on each kind of database."""
        found: list[ColumnElement[bool]] = []
        if self.status is not None:
            found.append(status_is(self.status))
        if self.persona not in {None, "default"}:
            found.append(LOG.c.persona != literal_column("'default'"))  # the condition of an index
        for column, value in (
            (LOG.c.tool_name, self.tool),
            (LOG.c.persona, self.persona),
            (LOG.c.fingerprint, self.fingerprint),
            (LOG.c.run_id, self.run),
            (LOG.c.origin, self.origin),
        ):
            if value is not None:
                found.append(column == value)
        if self.leaves_out_tried:
            found += own_only()
        if self.since is not None:
            found.append(LOG.c.timestamp >= moment(self.since))
        if self.until is not None:
            found.append(LOG.c.timestamp < moment(self.until))
        if self.trace is not None:
            found.append(or_(LOG.c.trace_id == self.trace, LOG.c.parent_trace_id == self.trace))
        return found

    @property
    def leaves_out_tried(self) -> bool:
        """Whether these leave out runs that only try code out."""
        return not self.tried and self.origin not in TRIED_ORIGINS

    def left_out(self) -> tuple[Filters, ColumnElement[bool]]:
        """What these leave out for being a trial or a search alone: filters, and a condition besides."""
        return dataclasses.replace(self, tried=True), tried_only()

    @property
    def facts(self) -> list[str]:
        """Those that the index of words knows too; that a row with a traceback is a failure says nothing."""
        status = None if self.status is None or self.status.upper() == "FAILURE" else self.status
        known = (self.tool, self.persona, self.fingerprint, self.run, status)
        return [value for value in known if value is not None]


def status_is(status: str) -> ColumnElement[bool]:
    """The condition on `status`, in any case; raises `ValueError` for one that there is not."""
    wanted = status.upper()
    if wanted not in STATUSES:
        raise ValueError(f"status={status!r} is none of {', '.join(STATUSES)}")
    return LOG.c.status == literal_column(f"'{wanted}'")


def own_only() -> list[ColumnElement[bool]]:
    """What leaves out runs that only tried code out, as the indexes of a tool's own failures say it."""
    return [LOG.c.origin != literal_column(f"'{origin}'") for origin in TRIED_ORIGINS]


def tried_only() -> ColumnElement[bool]:
    """What leaves those alone."""
    return or_(*(LOG.c.origin == literal_column(f"'{origin}'") for origin in TRIED_ORIGINS))


def moment(value: Moment) -> datetime:
    """The moment meant, in UTC; what has no zone is in the zone of the reader's clock."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return value.astimezone(UTC)
