"""The log as it is read: newest first, a page at a time.

Pages are keyset pages: the next one begins after the last row of this one, found by index, so that page
10,000 costs what page 1 does; OFFSET took 600 ms at that depth. Rows are in the order of their time, then
their id, because a row that waited in the spool has a late id and an early time.

The conditions on `status` are literals in the SQL text: a partial index serves only where the planner can prove
its condition. SQLite plans again for a bound value; a generic plan of PostgreSQL cannot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Select, func, literal_column, or_, select, tuple_

from healkit.store.database import Database
from healkit.store.logwriter import LogWriter, RecordRefused, RowMissing
from healkit.store.models import ExecutionCall, ExecutionDecision, ExecutionLog
from healkit.store.rows import CALLS, DECISIONS, LOG

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Log", "LogWriter", "Page", "RecordRefused", "RowMissing"]

STATUSES = ("RUNNING", "SUCCESS", "FAILURE")


@dataclasses.dataclass(frozen=True)
class Page:
    """Rows of the log, newest first; `next_before_id` asks for the next page, None at the end."""

    rows: list[ExecutionLog]
    next_before_id: int | None = None

    def __iter__(self) -> Iterator[ExecutionLog]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a DataFrame with the table's columns in their order, indexed by id."""
        import pandas as pd

        names = [column.name for column in LOG.columns]
        records = [[getattr(row, name) for name in names] for row in self.rows]
        return pd.DataFrame(records, columns=names).set_index("id")


class Log:
    """Questions to the log. `refresh` is called before each, to bring in what waits in the spool."""

    def __init__(self, database: Database, refresh: Callable[[], object] | None = None) -> None:
        self._database = database
        self._refresh = refresh

    def query(
        self,
        *,
        status: str | None = None,
        tool: str | None = None,
        persona: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        text: str | None = None,
        trace: str | None = None,
        fingerprint: str | None = None,
        limit: int = 50,
        before_id: int | None = None,
    ) -> Page:
        """One page of the rows that meet every condition given.

        status: RUNNING, SUCCESS or FAILURE. since, until: a time (a naive one is local), a date (local
        midnight), or either in ISO 8601; until is exclusive. text: anywhere in the traceback, case ignored.
        trace: that execution and the calls it made of other tools. before_id: `next_before_id` of the page
        before.
        """
        conditions: list[ColumnElement[bool]] = []
        if status is not None:
            conditions.append(_status_is(status))
        for column, value in (
            (LOG.c.tool_name, tool),
            (LOG.c.persona, persona),
            (LOG.c.fingerprint, fingerprint),
        ):
            if value is not None:
                conditions.append(column == value)
        if since is not None:
            conditions.append(LOG.c.timestamp >= _moment(since))
        if until is not None:
            conditions.append(LOG.c.timestamp < _moment(until))
        if text is not None:
            conditions.append(LOG.c.error_traceback.icontains(text, autoescape=True))
        if trace is not None:
            conditions.append(or_(LOG.c.trace_id == trace, LOG.c.parent_trace_id == trace))
        limit = max(1, limit)
        rows = self._rows(_newest_first(conditions).limit(limit + 1), before_id)
        return Page(rows[:limit], rows[limit - 1].id if len(rows) > limit else None)

    def get(self, log_id: int) -> ExecutionLog | None:
        """The row of that id, or None."""
        return self._first(select(ExecutionLog).where(LOG.c.id == log_id))

    def by_trace(self, trace_id: str) -> ExecutionLog | None:
        """The row of that execution, or None."""
        return self._first(select(ExecutionLog).where(LOG.c.trace_id == trace_id))

    def calls(self, trace_id: str) -> list[ExecutionCall]:
        """The calls that execution made through the bridge, in the order in which the host received them."""
        statement = select(ExecutionCall).where(CALLS.c.trace_id == trace_id)
        with self._reading() as session:
            calls = list(session.scalars(statement))
        # t10 comes after t9, which no text order of a database says.
        return sorted(calls, key=lambda call: (len(call.task_id), call.task_id))

    def decisions(self, trace_id: str) -> list[ExecutionDecision]:
        """The branches that execution said it took, in the order in which it did."""
        statement = select(ExecutionDecision).where(DECISIONS.c.trace_id == trace_id)
        with self._reading() as session:
            return list(session.scalars(statement.order_by(DECISIONS.c.number)))

    def last_error(self, tool: str | None = None, persona: str | None = None) -> ExecutionLog | None:
        """The newest failure, of one tool and persona where they are given; None when there is none."""
        conditions = [_status_is("FAILURE")]
        conditions += [LOG.c.tool_name == tool] if tool is not None else []
        conditions += [LOG.c.persona == persona] if persona is not None else []
        return self._first(_newest_first(conditions).limit(1))

    def tools_with_errors(self) -> list[str]:
        """The names of tools that ever failed, sorted."""
        # One jump through the index for each name; DISTINCT would read every failure there is.
        names: list[str] = []
        with self._reading() as session:
            while True:
                after = [LOG.c.tool_name > names[-1]] if names else []
                name = session.scalar(select(func.min(LOG.c.tool_name)).where(_status_is("FAILURE"), *after))
                if name is None:
                    return names
                names.append(name)

    def running(self) -> list[ExecutionLog]:
        """The rows that have not ended, newest first: in progress, or orphans of a host that died."""
        return self._rows(_newest_first([_status_is("RUNNING")]), None)

    def count(self, *, status: str | None = None, tool: str | None = None) -> int:
        """How many rows there are, of one status or tool where they are given."""
        conditions = [_status_is(status)] if status is not None else []
        conditions += [LOG.c.tool_name == tool] if tool is not None else []
        with self._reading() as session:
            return session.scalar(select(func.count()).select_from(LOG).where(*conditions)) or 0

    def _reading(self) -> Any:
        if self._refresh is not None:
            self._refresh()
        return self._database.read()

    def _first(self, statement: Select[Any]) -> ExecutionLog | None:
        with self._reading() as session:
            row: ExecutionLog | None = session.scalars(statement).first()
            return row

    def _rows(self, statement: Select[Any], before_id: int | None) -> list[ExecutionLog]:
        with self._reading() as session:
            if before_id is not None:
                before = session.scalar(select(LOG.c.timestamp).where(LOG.c.id == before_id))
                # A row that was deleted in between has no time any more; its id still says roughly where it
                # was.
                key = LOG.c.id < before_id
                if before is not None:
                    key = tuple_(LOG.c.timestamp, LOG.c.id) < tuple_(before, before_id)
                statement = statement.where(key)
            return list(session.scalars(statement))


def _newest_first(conditions: list[ColumnElement[bool]]) -> Select[Any]:
    return select(ExecutionLog).where(*conditions).order_by(LOG.c.timestamp.desc(), LOG.c.id.desc())


def _status_is(status: str) -> ColumnElement[bool]:
    wanted = status.upper()
    if wanted not in STATUSES:
        raise ValueError(f"status={status!r} is none of {', '.join(STATUSES)}")
    return LOG.c.status == literal_column(f"'{wanted}'")


def _moment(value: datetime | date | str) -> datetime:
    """The moment meant, in UTC; what has no zone is in the zone of the reader's clock."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return value.astimezone(UTC)
