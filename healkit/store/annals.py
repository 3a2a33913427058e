"""What the log says about revisions: how each one fared, and which one is to blame.

An execution's row names the persona that was asked for, and that may have been served by the `default` entry.
Such rows count for `default`, unless the persona has an entry of its own.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, case, func, or_
from sqlalchemy.orm import Session
from sqlmodel import col, select

from healkit.store.entries import Blame, RevisionInfo
from healkit.store.models import ExecutionLog, Revision, ToolRegistry
from healkit.store.vaultrows import revisions_of

_STATUS, _REVISION = col(ExecutionLog.status), col(ExecutionLog.revision)


def history(session: Session, tool: ToolRegistry) -> list[RevisionInfo]:
    """All revisions, oldest first, with how often each ran and failed."""
    failed = func.sum(case((_STATUS == "FAILURE", 1), else_=0))
    counts = {
        number: (int(runs), int(failures))
        for number, runs, failures in session.execute(
            select(_REVISION, func.count(), failed)
            .where(_rows_of(session, tool), _STATUS != "RUNNING")
            .group_by(_REVISION)
        )
    }
    return [
        RevisionInfo(
            number=row.number,
            parent=row.parent,
            author=row.author,
            reason=row.reason,
            created_at=row.created_at,
            code_hash=row.code_hash,
            draft=row.draft,
            active=row.number == tool.active_revision,
            runs=counts.get(row.number, (0, 0))[0],
            failures=counts.get(row.number, (0, 0))[1],
            motivating_log_id=row.motivating_log_id,
        )
        for row in session.scalars(revisions_of(tool).order_by(col(Revision.number)))
    ]


def blame(session: Session, tool: ToolRegistry, fingerprint: str | None) -> Blame:
    """Who brought that failure in and who cured it; the newest failure's fingerprint where none is given."""
    mine = _rows_of(session, tool)
    newest_first = (col(ExecutionLog.timestamp).desc(), col(ExecutionLog.id).desc())
    oldest_first = (col(ExecutionLog.timestamp), col(ExecutionLog.id))
    if fingerprint is None:
        newest = select(ExecutionLog).where(mine, _STATUS == "FAILURE").order_by(*newest_first).limit(1)
        row = session.scalars(newest).first()
        fingerprint = row.fingerprint if row is not None else None
        if not fingerprint:
            return Blame()
    alike = and_(mine, col(ExecutionLog.fingerprint) == fingerprint)
    first = session.scalars(select(ExecutionLog).where(alike).order_by(*oldest_first).limit(1)).first()
    last = session.scalars(select(ExecutionLog).where(alike).order_by(*newest_first).limit(1)).first()
    if first is None or last is None:
        return Blame(fingerprint)
    failing = _numbers(session, alike)
    healthy = _numbers(session, and_(mine, _STATUS == "SUCCESS")) - failing
    good = [n for n in healthy if first.revision is not None and n < first.revision]
    cured = [n for n in healthy if failing and n > max(failing)]
    return Blame(
        fingerprint=fingerprint,
        first_failed=first.revision,
        first_failed_log_id=first.id,
        first_failed_at=first.timestamp,
        last_good=max(good, default=None),
        last_cured_by=min(cured, default=None),
        last_failed_at=last.timestamp,
        count=session.scalar(select(func.count()).select_from(ExecutionLog).where(alike)) or 0,
    )


def _numbers(session: Session, condition: ColumnElement[bool]) -> set[int]:
    """The revisions that the rows ran."""
    found = session.scalars(select(_REVISION).where(condition).distinct())
    return {number for number in found if number is not None}


def _rows_of(session: Session, tool: ToolRegistry) -> ColumnElement[bool]:
    """The log rows that ran this entry's code; a call that was refused before it had an isolation ran none."""
    persona = col(ExecutionLog.persona)
    served = persona == tool.target_persona
    if tool.target_persona == "default":
        personas = select(ToolRegistry.target_persona).where(ToolRegistry.tool_name == tool.tool_name)
        served = or_(served, persona.not_in(sorted(session.scalars(personas))))
    # Code that was only tried has a row and no revision.
    ran = and_(col(ExecutionLog.isolation).is_not(None), _REVISION.is_not(None))
    return and_(col(ExecutionLog.tool_name) == tool.tool_name, served, ran)
