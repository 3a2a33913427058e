"""Audit of a run: entries made of its events.

There is no second bookkeeping: an entry is made of the event that was written to trace.jsonl, and names it. An event is
there once its line is written, whatever ends the process. Its entry is committed with the first, with each end of
something (a verdict, a step of a decision, a halt, the run), and otherwise waits for the next of these, so that the
checks of a patch cost one commit and not one each. A process that is killed meanwhile leaves events without entries.
They are taken from the run's folder when the next Healkit is opened: a mark beside the folders says which runs have not
ended, the head in the manifest says whose audit they belong to, and the run and its event's number say which entries
are there already.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from healkit.core import plain_files
from healkit.core.runtime.contents import MentionedView
from healkit.errors import EvidenceChanged, HealkitError
from healkit.parts.runs.audit_records import (
    AuditEntry,
    AuditFault,
    AuditHead,
    AuditMetadata,
    AuditStep,
    MentionedFacts,
)
from healkit.parts.runs.contract import TRACE, Run, RunManifest, TraceEvent
from healkit.plain_text import count

#: Makes the audit's entry of an event; None for an event that the audit does not hold.
StepOf = Callable[[TraceEvent], AuditStep | None]
#: Returns what makes the entries of a run; None for a run that is of no kind that is audited.
StepsOf = Callable[[RunManifest], StepOf | None]
#: Events that are committed at once, with what waits: the first of a run, and those that end something.
_COMMITTED = frozenset(
    {
        "observation_captured", "proposal_accepted", "proposal_rejected", "recovery_finished", "policy_halt",
        "error_raised", "run_finished", "trace.gather_info", "trace.execute_data_op", "trace.execute_output",
        "trace.finalize", "trace.self_correction",
    }
)  # fmt: skip
#: Wait for another writer of the database in the middle of a run; what could not be appended is tried again later.
_SHORT_WAIT_S = 0.05
#: Folder, beside those of the runs, with an empty file for each audited run that has not ended.
_MARKS = ".audited"


class Appends(Protocol):
    """Part of the audit that a run uses."""

    def extend(self, steps: Sequence[AuditStep], wait_s: float | None = None) -> list[AuditEntry]: ...
    def head(self) -> AuditHead: ...
    def get(self, execution_id: str) -> list[AuditEntry]: ...


class Told(NamedTuple):
    """Facts for the audit entry of an event."""

    choice_type: str
    tool_name: str
    params: dict[str, Any]
    metadata: AuditMetadata
    description: str


def entries_of(
    kind: Literal["heal", "decide"], tell: Callable[[TraceEvent], Told | None], *, is_clean: bool
) -> StepOf:
    """Return a function that makes a run's entries from what `tell` says of an event; None for one without an entry.

    is_clean: whether the events are sanitised.
    """

    def entry_of(event: TraceEvent) -> AuditStep | None:
        if (facts := tell(event)) is None:
            return None
        return AuditStep(
            execution_id=event.run_id,
            execution_type=kind,
            choice_type=facts.choice_type,
            tool_name=facts.tool_name,
            tool_params=facts.params,
            metadata=facts.metadata,
            description=facts.description,
            run_id=event.run_id,
            event_seq=event.seq,
            timestamp=event.ts_utc,
            is_clean=is_clean,
        )

    return entry_of


class _Steps:
    """Entries of a run's events, in the order of the events.

    An entry also holds the hashes of the evidence that was kept since the entry before it.
    """

    def __init__(self, step_of: StepOf) -> None:
        self._step_of = step_of
        self._files: dict[str, str] = {}

    def of(self, event: TraceEvent) -> AuditStep | None:
        self._files |= {ref.uri: ref.sha256 for ref in event.evidence_refs}
        step = self._step_of(event)
        if step is None or not self._files:
            return step
        files, self._files = {**(step.metadata.run_files or {}), **self._files}, {}
        return msgspec.structs.replace(step, metadata=msgspec.structs.replace(step.metadata, run_files=files))


class RunAudit:
    """Audit of one run; several threads may use it. It raises nothing: `problem` says what could not be appended."""

    def __init__(self, audit: Appends, step_of: StepOf) -> None:
        self._audit = audit
        self._steps = _Steps(step_of)
        self._lock = threading.Lock()
        self._waiting: list[AuditStep] = []
        self._trouble = ""

    @property
    def problem(self) -> str:
        """Sentence on the entries that could not be appended; empty when there are none."""
        if not self._trouble or not self._waiting:
            return ""
        return f"{count(len(self._waiting), 'entry')} could not be added to the audit: {self._trouble}"

    def begin(self) -> AuditHead | None:
        """Return the head of the chain before the run; None where it cannot be read."""
        try:
            return self._audit.head()
        except HealkitError:
            return None

    def heard(self, event: TraceEvent) -> None:
        """Take an event that was written; called by the run with each."""
        with self._lock:
            step = self._steps.of(event)
            if step is not None:
                self._waiting.append(step)
            if event.event_type in _COMMITTED:
                self._append(_SHORT_WAIT_S)

    def finish(self) -> AuditHead | None:
        """Append what still waits, and return the head of the chain; None where that failed."""
        with self._lock:
            self._append(None)
            try:
                return None if self._waiting else self._audit.head()
            except HealkitError as error:
                self._trouble = error.message
                return None

    def _append(self, wait_s: float | None) -> None:
        try:
            self._audit.extend(self._waiting, wait_s)
        except HealkitError as error:
            self._trouble = error.message
        else:
            self._waiting, self._trouble = [], ""


def mark(runs_dir: Path, run_id: str) -> None:
    """Note that an audited run has begun; raise `OSError`."""
    folder = runs_dir / _MARKS
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another run has ended just now, and was the last
            (folder / run_id).touch(mode=0o600)
            return


def unmark(runs_dir: Path, run_id: str) -> None:
    """Note that all entries of a run are in the audit."""
    with contextlib.suppress(OSError):
        plain_files.remove(runs_dir, f"{_MARKS}/{run_id}")
        (runs_dir / _MARKS).rmdir()


def recover(runs_dir: Path, make_audit: Callable[[], Appends], steps_of: StepsOf) -> int:
    """Append the entries that killed processes left in run folders; return how many.

    Runs that go on, and those of another database's audit, are left alone. Raises `DatabaseError`s.
    """
    try:
        run_ids = sorted(os.listdir(runs_dir / _MARKS))
    except OSError:
        return 0
    if not run_ids:
        return 0
    audit = make_audit()
    chain = audit.head().chain
    return sum(_recovered(runs_dir, run_id, chain, audit, steps_of) for run_id in run_ids)


def _recovered(runs_dir: Path, run_id: str, chain: str, audit: Appends, steps_of: StepsOf) -> int:
    from healkit.parts.runs.reader import read_run

    if not (runs_dir / run_id).is_dir():
        unmark(runs_dir, run_id)
        return 0
    with _held(runs_dir / run_id) as is_held:
        if not is_held:
            return 0
        run = read_run(runs_dir / run_id)
        steps = _steps_in(run, chain, steps_of)
        if steps is None:
            return 0
        recorded_seqs = {entry.event_seq for entry in audit.get(run_id)}
        missing = [step for step in steps if step.event_seq not in recorded_seqs]
        audit.extend(missing)
        unmark(runs_dir, run_id)
        return len(missing)


def _steps_in(run: Run, chain: str, steps_of: StepsOf) -> list[AuditStep] | None:
    """Return all entries that the events of a run make; None for a run of another audit, or of none."""
    head = msgspec.UNSET if run.manifest is None else run.manifest.audit
    if run.manifest is None or not isinstance(head, AuditHead) or head.chain != chain:
        return None
    step_of = steps_of(run.manifest)
    if step_of is None:
        return None
    step_maker = _Steps(step_of)
    return [step for event in run.events if (step := step_maker.of(event)) is not None]


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Hold a run's lock, as its writer does, so that one process at a time looks after it; yield whether that is so."""
    try:
        file = plain_files.opened(folder, TRACE)
    except OSError:
        yield False
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


class KeptFiles:
    """Comparison of the audit with the run folders and the files of views; `Audit.verify` uses it.

    view_fault: says what is wrong with the file of a view that an entry names; empty for nothing.
    """

    def __init__(
        self,
        runs_dir: Path,
        audit: Callable[[], Appends],
        steps_of: StepsOf,
        view_fault: Callable[[MentionedView], str],
    ) -> None:
        self._runs_dir, self._audit = runs_dir, audit
        self._steps_of, self._view_fault = steps_of, view_fault

    def fault(self, mentioned: MentionedFacts) -> AuditFault | None:
        """Return the first run folder, file or view that is not as the entries say."""
        chain = self._audit().head().chain
        for run_id in sorted(mentioned.runs):
            if (run_fault := self._run_fault(run_id, chain, mentioned)) is not None:
                return run_fault
        for view in mentioned.views:
            if message := self._view_fault(view):
                return AuditFault("file", view.position, message, view.execution_id)
        return None

    def _run_fault(self, run_id: str, chain: str, mentioned: MentionedFacts) -> AuditFault | None:
        from healkit.parts.runs.reader import read_run
        from healkit.parts.runs.run_folders import is_being_written

        folder = self._runs_dir / run_id
        if not folder.is_dir():
            return None  # deleted: an entry keeps its facts
        goes_on = is_being_written(folder)
        run = read_run(folder)
        steps = _steps_in(run, chain, self._steps_of)
        if steps is None:
            return None
        entries, last = mentioned.events.get(run_id, {}), mentioned.last
        missing = [step for step in steps if step.event_seq not in entries]
        if missing and not goes_on:  # it may have ended since the entries were read
            recorded_seqs = {entry.event_seq for entry in self._audit().get(run_id)}
            for step in missing:
                if step.event_seq not in recorded_seqs:
                    what = f"Event {step.event_seq} of run {run_id!r} ({step.choice_type})"
                    return AuditFault("cut_off", last + 1, f"{what} has no entry: it was cut off.", run_id)
        times = {event.seq: event.ts_utc for event in run.events}
        for seq, entry in sorted(entries.items()):
            if not goes_on and seq not in times:
                named_event = f"Entry {entry.position} names event {seq} of run {run_id!r}"
                message = f"{named_event}, which its {TRACE} does not have."
                return AuditFault("file", entry.position, message, run_id)
            if seq in times and times[seq] != entry.timestamp:
                message = (
                    f"Event {seq} of run {run_id!r} is not the one that entry {entry.position} was made of."
                )
                return AuditFault("file", entry.position, message, run_id)
        for name, (sha256, position) in sorted(mentioned.files.get(run_id, {}).items()):
            try:
                run.read_file(name, sha256)
            except EvidenceChanged as error:
                return AuditFault("file", position, error.message, run_id)
            except OSError as error:
                message = (
                    f"The file {name!r} of run {run_id!r}, which entry {position} names, cannot be read: "
                )
                return AuditFault("file", position, f"{message}{error.strerror or error}.", run_id)
        return None
