"""History of revisions: how each fared, and which to blame.

An execution's row names the persona that the caller named, which the `default` entry may have served. Such rows count
for `default`, unless the persona has an entry of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, case, cast, func, or_, select
from sqlalchemy.orm import Session
from sqlmodel import col

from healkit.contracts.vault import Blame, RevisionInfo
from healkit.store import tool_names
from healkit.store.models import ExecutionLog, Revision, ToolRegistry

_STATUS, _REVISION = col(ExecutionLog.status), col(ExecutionLog.revision)
#: Select columns, not ORM objects, to keep the session's identity map small.
_COLUMN_NAMES = (
    "number",
    "parent",
    "author",
    "reason",
    "created_at",
    "code_hash",
    "draft",
    "motivating_log_id",
)
_COLUMNS: tuple[Any, ...] = tuple(getattr(Revision, name) for name in _COLUMN_NAMES)
_ROWS_AT_ONCE = 500
_FAILURES_COMPARED_MAX, _SUCCESSES_COMPARED_MAX = 50, 10_000

#: A condition for any column that holds a revision's number.
Bound = Callable[[Any], ColumnElement[bool]]


def history(
    session: Session, tool: ToolRegistry, limit: int | None = None, before: int | None = None
) -> list[RevisionInfo]:
    """Return revisions, oldest first, with how often each ran and failed.

    limit: the newest so many only. before: only those with a smaller number.
    """
    number = col(Revision.number)
    of_tool = [col(Revision.tool_name) == tool.tool_name, col(Revision.target_persona) == tool.target_persona]
    bounds = _bounds(session, of_tool, limit, before)
    failed = func.sum(case((_STATUS == "FAILURE", 1), else_=0))
    fared = (
        select(_REVISION.label("number"), func.count().label("runs"), failed.label("failures"))
        .where(rows_of(session, tool), _STATUS != "RUNNING", *(bound(_REVISION) for bound in bounds))
        .group_by(_REVISION)
        .subquery()
    )
    statement = (
        select(*_COLUMNS, func.coalesce(fared.c.runs, 0), func.coalesce(fared.c.failures, 0))
        .outerjoin(fared, fared.c.number == number)
        .where(*of_tool, *(bound(number) for bound in bounds))
        .order_by(number)
    )
    return [
        RevisionInfo(
            **dict(zip(_COLUMN_NAMES, row, strict=True)),
            active=row[0] == tool.active_revision,
            runs=int(runs),
            failures=int(failures),
        )
        for *row, runs, failures in session.execute(statement.execution_options(yield_per=_ROWS_AT_ONCE))
    ]


def blame(session: Session, tool: ToolRegistry, fingerprint: str | None) -> Blame:
    """Find the revisions that brought a failure in and cured it; of the newest failure unless one is given."""
    mine = rows_of(session, tool)
    newest_first = (col(ExecutionLog.timestamp).desc(), col(ExecutionLog.id).desc())
    oldest_first = (col(ExecutionLog.timestamp), col(ExecutionLog.id))
    if fingerprint is None:
        newest = select(col(ExecutionLog.fingerprint)).where(mine, _STATUS == "FAILURE")
        fingerprint = session.scalars(newest.order_by(*newest_first).limit(1)).first()
        if not fingerprint:
            return Blame()
    alike = and_(mine, col(ExecutionLog.fingerprint) == fingerprint)
    told = select(_REVISION, col(ExecutionLog.id), col(ExecutionLog.timestamp)).where(alike)
    first = session.execute(told.order_by(*oldest_first).limit(1)).first()
    last = session.execute(told.order_by(*newest_first).limit(1)).first()
    if first is None or last is None:
        return Blame(fingerprint)
    healthy = and_(mine, _STATUS == "SUCCESS")
    failing = select(_REVISION).where(alike)
    good = select(func.max(_REVISION)).where(healthy, first[0] > _REVISION, _REVISION.not_in(failing))
    last_good = session.scalar(good)
    if last_good is None:
        same = select(_REVISION).where(healthy, col(ExecutionLog.revision) == first[0]).limit(1)
        last_good = session.scalar(same)
    newest_failing = session.scalar(select(func.max(_REVISION)).where(alike)) or 0
    cured = (number for number in passing_revisions(session, mine, fingerprint) if number > newest_failing)
    return Blame(
        fingerprint=fingerprint,
        first_failed=first[0],
        first_failed_log_id=first[1],
        first_failed_at=first[2],
        last_good=last_good,
        last_cured_by=min(cured, default=None),
        last_failed_at=last[2],
        count=session.scalar(select(func.count()).select_from(ExecutionLog).where(alike)) or 0,
    )


def passing_revisions(session: Session, mine: ColumnElement[bool], fingerprint: str) -> list[int]:
    """Return the revisions that passed with arguments for which that failure is on record.

    mine: the condition on the rows of the vault entry. A revision that was only given other arguments never met the
    failure. Looks at the newest failures and successes only, so that the cost is bounded.
    """
    arguments = cast(col(ExecutionLog.arguments), Text)
    newest_first = (col(ExecutionLog.timestamp).desc(), col(ExecutionLog.id).desc())
    failed = select(arguments).where(mine, col(ExecutionLog.fingerprint) == fingerprint)
    met = set(session.scalars(failed.order_by(*newest_first).limit(_FAILURES_COMPARED_MAX)))
    healthy: Any = select(_REVISION.label("number"), arguments.label("arguments")).where(
        mine, _STATUS == "SUCCESS"
    )
    passed = healthy.order_by(*newest_first).limit(_SUCCESSES_COMPARED_MAX).subquery()
    found = select(passed.c.number).where(passed.c.arguments.in_(met)).distinct()
    return sorted(session.scalars(found))


def _bounds(
    session: Session, of_tool: Sequence[ColumnElement[bool]], limit: int | None, before: int | None
) -> list[Bound]:
    """Return the limits of revision numbers, as conditions for any column that holds one."""
    bounds: list[Bound] = []
    if before is not None:
        bounds.append(lambda number: number < before)
    if limit is not None:
        number = col(Revision.number)
        newest = select(number).where(*of_tool, *(bound(number) for bound in bounds))
        newest = newest.order_by(number.desc()).limit(limit)
        lowest = session.scalar(select(func.min(newest.subquery().c.number))) or 0
        bounds.append(lambda number: number >= lowest)
    return bounds


def rows_of(session: Session, tool: ToolRegistry) -> ColumnElement[bool]:
    """Return the condition on log rows that ran this entry's code; a call refused before it had a tier ran none."""
    persona = col(ExecutionLog.persona)
    served = persona == tool.target_persona
    if tool.target_persona == "default":
        personas = select(col(ToolRegistry.target_persona)).where(
            col(ToolRegistry.tool_name) == tool.tool_name
        )
        served = or_(served, persona.not_in(sorted(session.scalars(personas))))
    # Code that was only tried has a row without a revision.
    ran = and_(col(ExecutionLog.isolation).is_not(None), _REVISION.is_not(None))
    return and_(col(ExecutionLog.tool_name).in_(tool_names.all_of(session, tool.tool_name)), served, ran)
