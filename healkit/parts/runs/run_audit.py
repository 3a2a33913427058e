"""Audit of a run: the rendering of its events as entries.

There is no second bookkeeping: an entry is made from the event in trace.jsonl, and names it. The part that the run
belongs to supplies the facts of each event (`hooks.Specs.audit_steps`).

An event is safe once its line is written, whatever ends the process. Entries are committed with the first event and
with each end of something: a verdict, a step of a decision, a halt, the run. Other entries wait for the next commit, so
that the checks of a patch cost one commit in total. A process that is killed in the meantime leaves events without
entries. They are taken from the run's folder when the next Healkit is opened. A mark beside the folders says which runs
have not ended. The head in the manifest says whose audit they belong to. The run and its event's number say which
entries already exist.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from healkit.core import plain_files
from healkit.core.runtime.contents import MentionedView
from healkit.errors import EvidenceChanged, HealkitError
from healkit.parts.runs.audit_records import (
    AuditFault,
    AuditHead,
    AuditMetadata,
    AuditStep,
    ExecutionType,
    Mentioned,
)
from healkit.parts.runs.contract import TRACE, Run, RunManifest, TraceEvent
from healkit.plain_text import count

if TYPE_CHECKING:
    from healkit.parts.runs.audit import Audit


class Told(NamedTuple):
    """Facts for the audit entry of an event."""

    choice_type: str
    tool_name: str
    params: dict[str, Any]
    metadata: AuditMetadata
    description: str


#: Tells the facts of an event; None for one that the audit does not hold.
Tell = Callable[[TraceEvent], Told | None]
#: Returns what tells the facts of a run's events; None for a run of a kind that is not audited.
TellOf = Callable[[RunManifest], Tell | None]
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


class _Entries:
    """Entries of a run's events, in the order of the events.

    An entry also contains the hashes of the evidence that was kept since the entry before it.
    """

    def __init__(self, manifest: RunManifest, tell: Tell) -> None:
        self._kind = cast("ExecutionType", manifest.execution_profile.name)  # checked when it is appended
        self._is_clean = manifest.redaction_policy.payload == "sanitised"
        self._tell = tell
        self._files: dict[str, str] = {}

    def of(self, event: TraceEvent) -> AuditStep | None:
        self._files |= {ref.uri: ref.sha256 for ref in event.evidence_refs}
        if (step := self._tell(event)) is None:
            return None
        metadata = step.metadata
        if self._files:
            files, self._files = {**(metadata.run_files or {}), **self._files}, {}
            metadata = msgspec.structs.replace(metadata, run_files=files)
        return AuditStep(
            event.run_id, self._kind, step.choice_type, step.tool_name, step.params, metadata, step.description,
            event.run_id, event.seq, event.ts_utc, self._is_clean,
        )  # fmt: skip


class RunAudit:
    """Audit of one run; several threads may use it. It raises nothing: `problem` says what could not be appended."""

    def __init__(self, audit: Audit, manifest: RunManifest, tell: Tell) -> None:
        self._audit = audit
        self._run_id = manifest.run_id
        self._entries = _Entries(manifest, tell)
        self._lock = threading.Lock()
        self._waiting: list[AuditStep] = []
        self._trouble = ""

    @property
    def problem(self) -> str:
        """Sentence on the entries that could not be appended; empty when there are none."""
        if not self._trouble or not self._waiting:
            return ""
        return f"{count(len(self._waiting), 'entry')} could not be added to the audit: {self._trouble}"

    def begin(self, manifest: RunManifest) -> RunManifest:
        """Return the manifest with the head of the chain before the run, if that can be read."""
        try:
            return msgspec.structs.replace(manifest, audit=self._audit.head())
        except HealkitError:
            return manifest

    def mark(self, runs_dir: Path) -> None:
        """Record that the run has begun; if the disk refuses that, the run's events say so."""
        folder = runs_dir / _MARKS
        with contextlib.suppress(OSError):
            while True:
                folder.mkdir(mode=0o700, exist_ok=True)
                with contextlib.suppress(
                    FileNotFoundError
                ):  # another run has ended just now, and was the last
                    (folder / self._run_id).touch(mode=0o600)
                    return

    def take(self, event: TraceEvent) -> None:
        """Take a written event; called by the journal with each."""
        with self._lock:
            step = self._entries.of(event)
            if step is not None:
                self._waiting.append(step)
            if event.event_type in _COMMITTED:
                self._append(_SHORT_WAIT_S)

    def finish(self) -> AuditHead | None:
        """Append the waiting entries, and return the head of the chain; None if that failed."""
        with self._lock:
            self._append(None)
            try:
                return None if self._waiting else self._audit.head()
            except HealkitError as error:
                self._trouble = error.message
                return None

    def unmark(self, runs_dir: Path) -> None:
        """Record that all its entries are in the audit."""
        _unmark(runs_dir, self._run_id)

    def _append(self, wait_s: float | None) -> None:
        try:
            self._audit.extend(self._waiting, wait_s)
        except HealkitError as error:
            self._trouble = error.message
        else:
            self._waiting, self._trouble = [], ""


def _unmark(runs_dir: Path, run_id: str) -> None:
    with contextlib.suppress(OSError):
        plain_files.remove_file(runs_dir, f"{_MARKS}/{run_id}")
        (runs_dir / _MARKS).rmdir()


def recover(runs_dir: Path, make_audit: Callable[[], Audit], tell_of: TellOf) -> int:
    """Append the entries that killed processes left in run folders; return how many.

    Running runs, and those of another database's audit, are not touched. Raises `DatabaseError`s.
    """
    try:
        run_ids = sorted(os.listdir(runs_dir / _MARKS))
    except OSError:
        return 0
    if not run_ids:
        return 0
    audit = make_audit()
    chain = audit.head().chain
    return sum(_recovered(runs_dir, run_id, chain, audit, tell_of) for run_id in run_ids)


def _recovered(runs_dir: Path, run_id: str, chain: str, audit: Audit, tell_of: TellOf) -> int:
    from healkit.parts.runs.reader import read_run

    if not (runs_dir / run_id).is_dir():
        _unmark(runs_dir, run_id)
        return 0
    with _held(runs_dir / run_id) as is_held:
        if not is_held:
            return 0
        steps = _steps_in(read_run(runs_dir / run_id), chain, tell_of)
        if steps is None:
            return 0
        missing = _missing(steps, audit, run_id)
        audit.extend(missing)
        _unmark(runs_dir, run_id)
        return len(missing)


def _steps_in(run: Run, chain: str, tell_of: TellOf) -> list[AuditStep] | None:
    """Return all entries of a run's events; None for a run of another audit, or without one."""
    head = msgspec.UNSET if run.manifest is None else run.manifest.audit
    if run.manifest is None or not isinstance(head, AuditHead) or head.chain != chain:
        return None
    tell = tell_of(run.manifest)
    if tell is None:
        return None
    entries = _Entries(run.manifest, tell)
    return [step for event in run.events if (step := entries.of(event)) is not None]


def _missing(steps: Sequence[AuditStep], audit: Audit, run_id: str) -> list[AuditStep]:
    recorded_seqs = {entry.event_seq for entry in audit.get(run_id)}
    return [step for step in steps if step.event_seq not in recorded_seqs]


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Hold a run's lock, as its writer does, so that only one process handles it; yield whether that succeeded."""
    try:
        file = plain_files.open_regular(folder, TRACE)
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


def kept_faults(
    mentioned: Mentioned,
    runs_dir: Path,
    audit: Audit,
    tell_of: TellOf,
    view_fault: Callable[[MentionedView], str],
) -> Iterator[AuditFault]:
    """Yield the run folders, files and views that differ from the audit's entries.

    view_fault: Says what is wrong with the file of a view that an entry names; empty for nothing.
    """
    chain = audit.head().chain
    for run_id in sorted(mentioned.runs):
        if (runs_dir / run_id).is_dir():  # of one that was deleted, an entry keeps its facts
            yield from _run_faults(runs_dir / run_id, chain, mentioned, audit, tell_of)
    for view in mentioned.views.values():
        if message := view_fault(view):
            yield AuditFault("file", view.position, message, view.execution_id)


def _run_faults(
    folder: Path, chain: str, mentioned: Mentioned, audit: Audit, tell_of: TellOf
) -> Iterator[AuditFault]:
    from healkit.parts.runs.reader import read_run
    from healkit.parts.runs.run_folders import is_being_written

    run_id = folder.name
    goes_on = is_being_written(folder)
    run = read_run(folder)
    if (steps := _steps_in(run, chain, tell_of)) is None:
        return
    entries = mentioned.events.get(run_id, {})
    missing = [step for step in steps if step.event_seq not in entries]
    if missing and not goes_on:  # it may have ended since the entries were read
        for step in _missing(missing, audit, run_id):
            what = f"Event {step.event_seq} of run {run_id!r} ({step.choice_type})"
            yield AuditFault("cut_off", mentioned.last + 1, f"{what} has no entry: it was cut off.", run_id)
    times = {event.seq: event.ts_utc for event in run.events}
    for seq, (position, time) in sorted(entries.items()):
        if seq not in times and not goes_on:
            message = (
                f"Entry {position} names event {seq} of run {run_id!r}, which its {TRACE} does not have."
            )
            yield AuditFault("file", position, message, run_id)
        elif seq in times and times[seq] != time:
            message = f"Event {seq} of run {run_id!r} is not the event from which entry {position} was made."
            yield AuditFault("file", position, message, run_id)
    for name, (sha256, position) in sorted(mentioned.files.get(run_id, {}).items()):
        try:
            run.read_file(name, sha256)
        except EvidenceChanged as error:
            yield AuditFault("file", position, error.message, run_id)
        except OSError as error:
            message = f"The file {name!r} of run {run_id!r}, which entry {position} names, cannot be read: "
            yield AuditFault("file", position, f"{message}{error.strerror or error}.", run_id)
