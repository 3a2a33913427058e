"""Filters of the log, as conditions on its rows.

The conditions on `status` are literals in the SQL text: a partial index serves only where the planner can prove
its condition. SQLite plans again for a bound value; a generic plan of PostgreSQL cannot.
"""

from __future__ import annotations

from datetime import UTC, datetime, time

from sqlalchemy import ColumnElement, literal_column, or_

from healkit.contracts.filters import STATUSES, Filters, Moment
from healkit.contracts.records import TRIED_ORIGINS
from healkit.store.models import LOG


def conditions_of(filters: Filters) -> list[ColumnElement[bool]]:
    """Make a condition of each filter but `text`, which each kind of database is searched for in its own way."""
    found: list[ColumnElement[bool]] = []
    if filters.status is not None:
        found.append(status_is(filters.status))
    if filters.persona not in {None, "default"}:
        found.append(LOG.c.persona != literal_column("'default'"))  # the condition of an index
    for column, value in (
        (LOG.c.tool_name, filters.tool),
        (LOG.c.persona, filters.persona),
        (LOG.c.fingerprint, filters.fingerprint),
        (LOG.c.run_id, filters.run),
        (LOG.c.origin, filters.origin),
    ):
        if value is not None:
            found.append(column == value)
    if filters.leaves_out_tried:
        found += own_only()
    if filters.since is not None:
        found.append(LOG.c.timestamp >= moment(filters.since))
    if filters.until is not None:
        found.append(LOG.c.timestamp < moment(filters.until))
    if filters.trace is not None:
        found.append(or_(LOG.c.trace_id == filters.trace, LOG.c.parent_trace_id == filters.trace))
    return found


def indexed_facts(filters: Filters) -> list[str]:
    """Return the values that the full-text index holds too; FAILURE says nothing, as only failures have a traceback."""
    status = None if filters.status is None or filters.status.upper() == "FAILURE" else filters.status
    known = (filters.tool, filters.persona, filters.fingerprint, filters.run, status)
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
