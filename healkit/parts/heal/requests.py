"""Patch requests: patches that wait for approval.

A request needs no running process: it stays in the database until it is decided. Accepting is one write transaction
with the patch itself, so there is never a decision without its revision, or the other way round. If two people decide
at once, the second one finds the first one's decision. If a healing had asked, the same transaction adds the decision
to its audit.
"""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING, Any, get_args

from sqlalchemy import case, func
from sqlalchemy.orm import Session
from sqlmodel import col, select

from healkit.core.contracts.execution import utc_now
from healkit.core.contracts.tools import EntryRef, revision_label
from healkit.core.contracts.vault import DEFAULT_PERSONA, CodeChange
from healkit.core.store import vault_rows
from healkit.core.store.database import Database
from healkit.core.store.entries import check_untampered, code_hash, describe
from healkit.core.store.models import PatchRow, Revision, ToolRegistry
from healkit.core.store.vault_rows import apply_patch
from healkit.errors import PatchRequestDecided, PatchRequestNotFound, RevisionConflict, VaultError, named
from healkit.parts.heal.reach import added_reach, told_reach
from healkit.parts.heal.records import VERDICTS, PatchRequest, RequestAuthor, RequestState, Verdict
from healkit.parts.runs.audit_records import EXECUTION_ID, AuditMetadata, AuditStep

if TYPE_CHECKING:
    from healkit.parts.runs.audit import Audit

_STATE = col(PatchRow.state)


class Requests:
    """Patch requests of one database; `hk.requests`.

    audit: Gets the decisions on requests of healings.

    Example:
    >>> _ = hk.vault.add("pace", "def pace(km, minutes): return km / minutes")
    >>> request = hk.requests.add("pace", "def pace(km, minutes): return minutes / km")
    >>> hk.requests.accept(request.id).state
    'accepted'
    """

    def __init__(self, database: Database, audit: Audit | None = None) -> None:
        self._database = database
        self._audit = audit

    def add(
        self,
        tool_name: str,
        code: str,
        *,
        persona: str = DEFAULT_PERSONA,
        parent: int | None = None,
        advisor: str = "",
        author: RequestAuthor = "agent",
        reason: str = "",
        verdict: Verdict | str = "",
        motivating_log_id: int | None = None,
        run_id: str | None = None,
    ) -> PatchRequest:
        """Request approval for a patch; the tool does not change.

        parent: The revision from which it was made, by default the active one.

        The same code for the same parent is the existing request, decided or not; a waiting one without a verdict takes
        this one. Raises `ToolNotFound`, `PersonaNotFound`, `RevisionNotFound`, `VaultError` for code that changes
        nothing, and the errors of `Vault.patch` for code that cannot run.

        Example:
        >>> _ = hk.vault.add("speed", "def speed(km, hours): return km * hours")
        >>> request = hk.requests.add("speed", "def speed(km, hours): return km / hours")
        >>> request.state, hk.vault.lookup("speed").revision
        ('pending', 1)
        """
        _check_words(author, verdict)
        digest = code_hash(code)
        with self._database.write() as session:
            tool = vault_rows.exactly(session, tool_name, persona)
            tool_name = tool.tool_name  # it may have been renamed
            base = vault_rows.find_revision(session, tool, parent or tool.active_revision)
            if (row := _same_request(session, tool, base.number, digest)) is not None:
                if row.state == "pending" and not row.verdict:
                    row.verdict = verdict
                return _record(session, row)
            _store_code(session, self._database.dialect_name, base, code, digest)
            row = PatchRow(
                tool_name=tool_name,
                target_persona=persona,
                parent=base.number,
                code_hash=digest,
                advisor=advisor,
                author=author,
                reason=reason,
                verdict=verdict,
                motivating_log_id=motivating_log_id,
                run_id=run_id,
                created_at=utc_now(),
            )
            session.add(row)
            session.flush()
            return _record(session, row)

    def get(self, number: int) -> PatchRequest:
        """Return a request by its number; raise `PatchRequestNotFound`.

        Example:
        >>> _ = hk.vault.add("weight", "def weight(g): return g * 1000")
        >>> number = hk.requests.add("weight", "def weight(g): return g / 1000").id
        >>> print(hk.requests.get(number).diff)
        --- weight v1
        +++ this patch
        @@ -1 +1 @@
        -def weight(g): return g * 1000
        +def weight(g): return g / 1000
        """
        with self._database.read() as session:
            return _record(session, _row(session, number))

    def pending(self, tool_name: str | None = None) -> builtins.list[PatchRequest]:
        """Return the waiting requests, newest first, of one tool if given.

        Example:
        >>> _ = hk.vault.add("depth", "def depth(m): return m")
        >>> _ = hk.requests.add("depth", "def depth(m): return -m")
        >>> [request.code for request in hk.requests.pending("depth")]
        ['def depth(m): return -m']
        """
        return self.list(tool_name, state="pending")

    def list(
        self, tool_name: str | None = None, *, state: RequestState | None = None, limit: int = 100
    ) -> builtins.list[PatchRequest]:
        """Return at most `limit` requests: the waiting ones, then the decided ones, each newest first.

        state: Only those that are `pending`, `accepted`, `declined` or `overtaken`.

        Example:
        >>> _ = hk.vault.add("volume", "def volume(a): return a ** 2")
        >>> number = hk.requests.add("volume", "def volume(a): return a ** 3").id
        >>> _ = hk.requests.accept(number, by="Ada")
        >>> [(request.state, request.decided_by) for request in hk.requests.list("volume")]
        [('accepted', 'Ada')]
        """
        waiting_first = case((_STATE == "pending", 0), else_=1)
        statement = select(PatchRow).order_by(waiting_first, col(PatchRow.id).desc()).limit(limit)
        if state is not None:
            statement = statement.where(PatchRow.state == state)
        with self._database.read() as session:
            if tool_name is not None:
                statement = statement.where(PatchRow.tool_name == vault_rows.current(session, tool_name))
            return [_record(session, row) for row in session.scalars(statement)]

    def waiting(self) -> int:
        """Count the waiting requests.

        Example:
        >>> before = hk.requests.waiting()
        >>> _ = hk.vault.add("width", "def width(m): return m")
        >>> _ = hk.requests.add("width", "def width(m): return abs(m)")
        >>> hk.requests.waiting() - before
        1
        """
        with self._database.read() as session:
            statement = select(func.count()).select_from(PatchRow).where(_STATE == "pending")
            return session.scalar(statement) or 0

    def accept(self, number: int, by: str = "person", *, in_run: bool = False) -> PatchRequest:
        """Make the patch the tool's next revision; accepting it again changes nothing.

        by: Who approves; stored.
        in_run: The healing that asked is still running, and records the decision itself.

        Raises `PatchRequestNotFound`, `PatchRequestDecided` for a declined one, `VaultTampered`, and `RevisionConflict`
        with both sides if the tool was changed since then. The request is then `overtaken`, and a second call says the
        same. Also raises `DatabaseNotTrusted`: a request of an untrusted database cannot be accepted.

        Example:
        >>> _ = hk.vault.add("height", "def height(cm): return cm * 100")
        >>> number = hk.requests.add("height", "def height(cm): return cm / 100").id
        >>> hk.requests.accept(number, by="Ada").state
        'accepted'
        >>> hk.vault.lookup("height").code
        'def height(cm): return cm / 100'
        """
        self._database.require_trust(f"Request {number} cannot be accepted")
        with self._database.write() as session:
            row = _row(session, number)
            if row.state == "accepted":
                return _record(session, row)
            if row.state == "declined":
                raise _decided(row, "If you want it after all, propose it again from the active revision.")
            decides = row.state == "pending" and not in_run
            conflict = _accept(session, self._database.dialect_name, row, by)
            if self._audit is not None and decides:
                self._audit.extend_within(session, _decision_on(row))
            accepted = _record(session, row)
        # Raised only now: that it was overtaken had to be committed first.
        if conflict is not None:
            raise conflict
        return accepted

    def decline(
        self, number: int, reason: str = "", by: str = "person", *, in_run: bool = False
    ) -> PatchRequest:
        """Decline a request; declining it again changes nothing.

        in_run: As in `accept`.

        Raises `PatchRequestNotFound`, and `PatchRequestDecided` for an accepted or overtaken one.

        Example:
        >>> _ = hk.vault.add("year", "def year(days): return days / 365")
        >>> number = hk.requests.add("year", "def year(days): return 0").id
        >>> declined = hk.requests.decline(number, "it answers nothing")
        >>> declined.state, declined.note
        ('declined', 'it answers nothing')
        """
        with self._database.write() as session:
            row = _row(session, number)
            if row.state == "pending":
                row.state, row.note = "declined", reason
                row.decided_at, row.decided_by = utc_now(), by
                session.flush()
                if self._audit is not None and not in_run:
                    self._audit.extend_within(session, _decision_on(row))
            elif row.state != "declined":
                undo = f"Undo it with hk.undo({row.tool_name!r})."
                raise _decided(row, undo if row.state == "accepted" else "It did not change anything.")
            return _record(session, row)


def _accept(session: Session, dialect: str, row: PatchRow, by: str) -> RevisionConflict | None:
    """Apply the patch and store the decision; return the conflict if the tool was changed since then."""
    if row.state == "overtaken":
        return RevisionConflict(row.note)
    stored = vault_rows.stored_code(session, _sides(session, row)[1])
    check_untampered(f"patch request {row.id}", stored)
    patch = CodeChange(stored.code, row.author, row.reason, row.parent, row.motivating_log_id)
    result = apply_patch(session, dialect, row.tool_name, row.target_persona, patch)
    row.decided_at, row.decided_by = utc_now(), by
    if isinstance(result, RevisionConflict):
        row.state, row.note = "overtaken", str(result)
        session.flush()
        return result
    row.state, row.revision = "accepted", result.revision.number
    session.flush()
    return None


def _decision_on(row: PatchRow) -> list[AuditStep]:
    """Return the audit entry of the decision, if a healing had asked; none for another request."""
    if not row.run_id or not re.fullmatch(EXECUTION_ID, row.run_id):
        return []
    accepted = row.state == "accepted"
    became = f" as revision {row.revision}" if accepted else ""
    error = {"accepted": None, "declined": "PATCH_DECLINED"}.get(row.state, RevisionConflict.code)
    state = {"action": row.state, "request_id": row.id, "revision": row.revision}
    step = AuditStep(
        execution_id=row.run_id,
        execution_type="heal",
        choice_type="proposal_accepted" if accepted else "proposal_rejected",
        tool_name=row.tool_name,
        tool_params={"author": row.author, "base_revision": row.parent, "code_hash": row.code_hash},
        metadata=AuditMetadata(success=accepted, error_message=error, actual_state=state),
        description=f"Request {row.id} was {row.state}{became}.",
        run_id=row.run_id,
        is_clean=True,
    )
    return [step]


def _store_code(session: Session, dialect: str, base: Revision, code: str, digest: str) -> None:
    """Store proposed code; raise `VaultError` if it cannot run, or is the revision's own code."""
    kind = vault_rows.stored_code(session, base).type
    if digest == base.code_hash:
        raise VaultError(
            f"{revision_label(base.tool_name, base.target_persona, base.number)} already has this code, so "
            "there is nothing to approve."
        )
    ref = EntryRef(base.tool_name, base.target_persona, base.number, digest)
    describe(code, kind, ref, dialect, draft=False)
    vault_rows.store_code(session, code, digest, kind)


def _check_words(author: str, verdict: str) -> None:
    for word, value, allowed in (
        ("author", author, get_args(RequestAuthor)),
        ("verdict", verdict, ("", *VERDICTS)),
    ):
        if value not in allowed:
            raise VaultError(
                f"{word}={value!r} is not known.", hint=f"Use one of {', '.join(map(repr, allowed))}."
            )


def _row(session: Session, number: int) -> PatchRow:
    row = session.get(PatchRow, number) if isinstance(number, int) else None
    if row is None:
        raise PatchRequestNotFound(
            f"There is no patch request {named(number)}.",
            hint="hk.requests.list() lists all requests.",
        )
    return row


def _same_request(session: Session, tool: ToolRegistry, parent: int, digest: str) -> PatchRow | None:
    statement = select(PatchRow).where(
        PatchRow.tool_name == tool.tool_name,
        PatchRow.target_persona == tool.target_persona,
        PatchRow.parent == parent,
        PatchRow.code_hash == digest,
    )
    return session.scalars(statement).first()


def _decided(row: PatchRow, hint: str) -> PatchRequestDecided:
    label = revision_label(row.tool_name, row.target_persona, row.revision)
    became = "" if row.revision is None else f" and is {label}"
    by = f" by {row.decided_by!r}" if row.decided_by else ""
    return PatchRequestDecided(f"Patch request {row.id} was already {row.state}{by}{became}.", hint=hint)


def _sides(session: Session, row: PatchRow) -> tuple[Revision, Revision]:
    """Return the revision from which the patch was made, and the one it would become."""
    tool = vault_rows.exactly(session, row.tool_name, row.target_persona, removed=True)
    base = vault_rows.find_revision(session, tool, row.parent)
    return base, vault_rows.with_code(base, row.code_hash)


def _record(session: Session, row: PatchRow) -> PatchRequest:
    base, proposed = _sides(session, row)
    fields: dict[str, Any] = row.model_dump(exclude={"target_persona"})
    before, after = (vault_rows.stored_code(session, side) for side in (base, proposed))
    reach = added_reach(before.code, after.code) if after.type == "python" else ()
    return PatchRequest(
        **fields,
        persona=row.target_persona,
        code=after.code,
        diff=told_reach(reach) + vault_rows.diff_of(session, base, proposed, "this patch"),
    )
