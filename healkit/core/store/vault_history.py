"""History of revisions: their results, and blame for failures.

An execution's row names the persona that the caller named, although the `default` entry may have run. Such rows count
for `default`, unless the persona has its own entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, cast, func, select
from sqlalchemy.orm import Session
from sqlmodel import col

from healkit.core.contracts.vault import Blame, RevisionInfo
from healkit.core.store.log_pages import own_only, status_is
from healkit.core.store.models import (
    DAYS,
    GROUPS,
    LOG,
    Revision,
    ToolRegistry,
)
from healkit.core.store.vault_names import all_of

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
_SAME_FINGERPRINT_MAX, _FAILURES_COMPARED_MAX, _RUNS_COMPARED_MAX, _STRETCHES_MAX = 500, 50, 500, 3

#: A condition on any column that holds a revision's number.
Bound = Callable[[Any], ColumnElement[bool]]


def history(
    session: Session, tool: ToolRegistry, limit: int | None = None, before: int | None = None
) -> list[RevisionInfo]:
    """Return revisions, oldest first, with the numbers of their runs and failures.

    The numbers come from daily counts (`stats`), so the cost does not depend on the number of runs. Calls that were
    refused before any code ran do not count.

    limit: Only the newest `limit`.
    before: Only revisions with a smaller number.
    """
    number = col(Revision.number)
    of_tool = [col(Revision.tool_name) == tool.tool_name, col(Revision.target_persona) == tool.target_persona]
    bounds = _bounds(session, of_tool, limit, before)
    fared = _fared(session, tool).where(*(bound(DAYS.c.revision) for bound in bounds)).subquery()
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
    """Find the revisions that introduced and cured a failure; by default, the newest failure."""
    names, served = all_of(session, tool.tool_name), served_by(session, tool)
    # Rows that ran code: a call refused before it had a tier did not, and code on trial has no revision.
    mine = and_(served(LOG.c.persona), LOG.c.isolation.is_not(None), LOG.c.revision.is_not(None))
    place = select(LOG.c.timestamp, LOG.c.id, LOG.c.fingerprint, LOG.c.revision).where(mine)
    if fingerprint is None:
        newest = place.where(status_is("FAILURE"), *own_only())
        newest = newest.order_by(LOG.c.timestamp.desc(), LOG.c.id.desc()).limit(1)
        # By name: for several at once, all rows would be read and sorted.
        found = [row for name in names for row in session.execute(newest.where(LOG.c.tool_name == name))]
        fingerprint = max(found)[2] if found else None
        if not fingerprint:
            return Blame()
    # Counts of its groups, one for each name and persona, because there may be millions of failures.
    same = GROUPS.c.fingerprint == fingerprint, GROUPS.c.tool_name.in_(names), served(GROUPS.c.persona)
    groups = session.execute(select(GROUPS).where(*same)).all()
    if not groups:
        return Blame(fingerprint)
    first_id = min((group.first_seen, group.first_log_id) for group in groups)[1]
    first = session.execute(place.where(LOG.c.id == first_id)).first()
    if first is None:  # a refused call
        return Blame(fingerprint)
    numbers = {row.number: row for row in session.execute(_fared(session, tool))}

    def failing(number: int) -> bool:
        """Tell whether a revision failed in this way; only its rows from days with a failure are read."""
        days = numbers[number].first_day, numbers[number].last_day
        begin, end = (datetime.combine(day, datetime.min.time(), UTC) for day in days)
        of_days = LOG.c.timestamp >= begin, LOG.c.timestamp < end + timedelta(days=1)
        # Not by the index of names, which contains all their rows.
        same = LOG.c.fingerprint == fingerprint, func.coalesce(LOG.c.tool_name, "").in_(names)
        row = place.where(*same, LOG.c.revision == number, *of_days).limit(1)
        return numbers[number].failures > 0 and session.execute(row).first() is not None

    newest_first = sorted(numbers, reverse=True)
    good = (n for n in newest_first if n <= first.revision and numbers[n].runs > numbers[n].failures)
    last_good = next((n for n in good if n == first.revision or not failing(n)), None)
    newest_failing = next((n for n in newest_first if failing(n)), 0)
    cured = (n for n in passing_revisions(session, names, mine, fingerprint) if n > newest_failing)
    return Blame(
        fingerprint=fingerprint,
        first_failed=first.revision,
        first_failed_log_id=first.id,
        first_failed_at=first.timestamp,
        last_good=last_good,
        last_cured_by=min(cured, default=None),
        last_failed_at=max(group.last_seen for group in groups),
        count=sum(group.failures for group in groups),
    )


def passing_revisions(
    session: Session, names: Sequence[str], mine: ColumnElement[bool], fingerprint: str
) -> list[int]:
    """Return the revisions that passed with recorded arguments of that failure.

    names: All names that the tool had.
    mine: Condition on the rows of its vault entry.

    A revision that only ran with other arguments does not count. To limit the cost, this reads only the newest
    failures. Of the successes, it reads those right after a revision's last failure, and the newest. So a cure remains
    one, however much runs later.
    """
    arguments = cast(LOG.c.arguments, Text)
    newest_first = (LOG.c.timestamp.desc(), LOG.c.id.desc())
    # The newest of that fingerprint, whosever they are, and of these the entry's own: with both conditions at once
    # PostgreSQL expects few rows, and reads and sorts all that the fingerprint has.
    ours = and_(mine, func.coalesce(LOG.c.tool_name, "").in_(names)).label("mine")
    newest = select(LOG.c.revision, LOG.c.timestamp, LOG.c.id, arguments.label("arguments"), ours)
    newest = newest.where(LOG.c.fingerprint == fingerprint).order_by(*newest_first)
    row = newest.limit(_SAME_FINGERPRINT_MAX).subquery().c
    failures = select(row.revision, row.timestamp, row.arguments).where(row.mine)
    failures = failures.order_by(row.timestamp.desc(), row.id.desc()).limit(_FAILURES_COMPARED_MAX)
    failed = session.execute(failures).all()
    met = {row[2] for row in failed}
    last_of = {revision: time for revision, time, _ in reversed(failed)}
    columns = LOG.c.revision.label("number"), LOG.c.status, arguments.label("arguments"), mine.label("mine")
    passed: set[int] = set()
    for name in names if failed else ():
        of_tool = select(*columns).where(LOG.c.tool_name == name, *own_only())
        after = [
            of_tool.where(LOG.c.timestamp >= time).order_by(LOG.c.timestamp, LOG.c.id)
            for time in sorted(last_of.values(), reverse=True)[:_STRETCHES_MAX]
        ]
        for runs in (of_tool.order_by(*newest_first), *after):
            run = runs.limit(_RUNS_COMPARED_MAX).subquery().c
            same = select(run.number).where(run.mine, run.status == "SUCCESS", run.arguments.in_(met))
            passed.update(session.scalars(same.distinct()))
    return sorted(passed)


def _bounds(
    session: Session, of_tool: Sequence[ColumnElement[bool]], limit: int | None, before: int | None
) -> list[Bound]:
    """Return the limits of revision numbers, as conditions on any column that holds one."""
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


def served_by(session: Session, tool: ToolRegistry) -> Callable[[Any], ColumnElement[bool]]:
    """Return a condition on the column with the caller's persona: this entry ran for it."""
    if tool.target_persona != "default":
        return lambda persona: persona == tool.target_persona
    personas = select(col(ToolRegistry.target_persona)).where(col(ToolRegistry.tool_name) == tool.tool_name)
    others = sorted({*session.scalars(personas)} - {"default"})
    return lambda persona: persona.not_in(others)


def _fared(session: Session, tool: ToolRegistry) -> Select[Any]:
    """Select each revision's numbers of runs and failures of code, and the days of the first and the last."""
    fared = select(
        DAYS.c.revision.label("number"),
        func.sum(DAYS.c.runs - DAYS.c.refused).label("runs"), func.sum(DAYS.c.failures).label("failures"),
        func.min(DAYS.c.day).label("first_day"), func.max(DAYS.c.day).label("last_day"),
    )  # fmt: skip
    return (
        fared.where(DAYS.c.tool_name.in_(all_of(session, tool.tool_name)), DAYS.c.revision > 0)
        .where(served_by(session, tool)(DAYS.c.persona))
        .group_by(DAYS.c.revision)
    )
