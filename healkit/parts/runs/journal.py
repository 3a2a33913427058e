"""Journal of a run: its list of events, with its evidence.

An event is made once, here: numbered, cleaned, and written as a line of trace.jsonl. If the run is audited, it also
becomes an entry of the audit (`run_audit`). Each line is one write, made after the event has happened; `kill -9` cannot
undo it. The journal waits for the disk (fsync) only when the run ends or its policy halts it.

A full or broken disk never changes what a tool does. A partial line is cut off again. Its event waits in memory with
its number, and later events wait after it. All are written in order as soon as the disk accepts them. Events that are
still waiting at the end are lost with the process, and `problem` says how many.

Payload is in known fields of an event, and only these are cleaned: a hash or an id that looks like a secret must stay.
A key that the contract does not declare is payload.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import msgspec

from healkit.core import plain_files
from healkit.core.crossing import values
from healkit.core.secrets.cleaner import Cleaned, Cleaner, clean_bounded, secret_columns
from healkit.core.wire.encoding import to_jsonable
from healkit.errors import RunFolderError
from healkit.parts.runs.contract import (
    CONTRACT_KEYS,
    EVIDENCE,
    EVIDENCE_MANIFEST,
    RUN_MANIFEST,
    ActionSpec,
    ErrorObject,
    EventType,
    EvidenceItem,
    EvidenceKind,
    EvidenceRef,
    RunManifest,
    StateSignature,
    TraceEvent,
    empty_evidence,
)
from healkit.parts.runs.run_audit import RunAudit
from healkit.parts.runs.run_folders import begin_folder, discard, manifest_bytes, publish, write_whole
from healkit.plain_text import count

#: Limit of the events that wait in memory for the disk; a run within its policy has fewer.
WAITING_MAX = 5000
_SYNCED: frozenset[str] = frozenset({"run_finished", "policy_halt"})

_encode = msgspec.json.Encoder().encode


class EventPlace(TypedDict, total=False):
    """Place of an event: the step that it belongs to, and the states before and after."""

    step_id: str | None
    before: StateSignature | None
    after: StateSignature | None


class EventContent(TypedDict, total=False):
    """Content of an event; the fields are those of `TraceEvent`."""

    action_spec: ActionSpec | None
    result: Mapping[str, Any] | None
    error: ErrorObject | None
    evidence: Iterable[EvidenceRef]
    metadata: Mapping[str, Any] | None


class EventFields(EventPlace, EventContent, total=False):
    """Fields of an event that the caller knows."""


def _cleaned(cleaner: Cleaner, value: object, max_bytes: int) -> Cleaned:
    redacted = values.without_secret_frames(value, partial(secret_columns, cleaner))
    return clean_bounded(cleaner, redacted, max_bytes)


class _Redaction:
    """Cleaning of one event's payload, with a count of hidden values; one is made for each event."""

    def __init__(self, cleaner: Cleaner, max_bytes: int) -> None:
        self._cleaner = cleaner
        self._max_bytes = max_bytes
        self.hidden: dict[str, int] = {}

    def payload(self, value: object) -> Any:
        """Clean one value that a tool took or returned."""
        cleaned = _cleaned(self._cleaner, value, self._max_bytes)
        for rule, times in cleaned.hidden.items():
            self.hidden[rule] = self.hidden.get(rule, 0) + times
        return cleaned.value

    def open_field(self, fields: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Clean `result`, `metadata` or `details`: keys of the contract stay, every other value is payload."""
        if fields is None:
            return None
        return {
            key: value if key in CONTRACT_KEYS or value is None else self.payload(value)
            for key, value in fields.items()
        }

    def action(self, spec: ActionSpec | None) -> ActionSpec | None:
        """Clean an action's arguments."""
        return None if spec is None else msgspec.structs.replace(spec, arguments=self.payload(spec.arguments))

    def error(self, error: ErrorObject | None) -> ErrorObject | None:
        """Clean an error's message and details."""
        if error is None:
            return None
        details = self.open_field(error.details) or {}
        return msgspec.structs.replace(error, message=str(self.payload(error.message)), details=details)


class RunJournal:
    """List of one run's events, from `run_started` to `run_finished`; several threads may append.

    Raises `RunFolderError`, `RunExists` or `RunLocked` if it cannot start. After that, disk errors raise nothing:
    `problem` contains one sentence on what could not be written.

    durable: Sync evidence files to the disk whenever the trace is synced; each file costs the same time again.
    audit: Gets each written event, in order; None for a run that is not audited.
    """

    def __init__(
        self,
        runs_dir: Path,
        manifest: RunManifest,
        cleaner: Cleaner,
        *,
        durable: bool = False,
        audit: RunAudit | None = None,
    ) -> None:
        self.run_id = manifest.run_id
        self._manifest = manifest if audit is None else audit.begin(manifest)
        self._cleaner = cleaner = cleaner.of_record()  # a run is one record
        self._payload_max_bytes = manifest.redaction_policy.payload_max_bytes
        self._lock = threading.RLock()
        self._owner = os.getpid()
        self._audit = audit
        self.closed = False
        self._seq = 0
        self._size_bytes = 0
        self._waiting: deque[bytes] = deque()
        self._lost = 0
        self._trouble = self._not_synced = ""
        self._durable = durable
        self.folder, self._descriptor = begin_folder(runs_dir, self._manifest)
        try:
            metadata = {
                "manifest_uri": RUN_MANIFEST,
                "execution_mode": manifest.execution_mode,
                "execution_profile": msgspec.to_builtins(manifest.execution_profile),
                "policy": msgspec.to_builtins(manifest.policy_defaults),
            }
            self.append("run_started", metadata=metadata)
            if self._trouble:
                discard(self.folder)
                raise RunFolderError(f"No run can be recorded in {str(runs_dir)!r}: {self._trouble}.")
            self.folder = publish(self.folder, runs_dir, self.run_id)
        except BaseException:
            os.close(self._descriptor)
            self.closed = True
            raise
        if audit is not None:
            audit.mark(runs_dir)
        self._evidence = EvidenceStore(
            self.folder, self.run_id, cleaner, manifest.redaction_policy.evidence_max_bytes
        )

    @property
    def problem(self) -> str:
        """Sentence for the user on what is missing in the record; empty if nothing is."""
        parts = []
        if waiting := len(self._waiting) + self._lost:
            parts.append(f"{count(waiting, 'event')} could not be written ({self._trouble})")
        if self._evidence.lost:
            kinds = ", ".join(self._evidence.lost)
            parts.append(f"evidence could not be kept ({kinds}: {self._evidence.problem})")
        if self._not_synced:
            parts.append(f"it could not be written to the disk ({self._not_synced})")
        if parts:
            return f"The record of run {self.run_id!r} in {str(self.folder)!r} is not complete: {'; '.join(parts)}."
        return "" if self._audit is None else self._audit.problem

    def learn(self, *values: object) -> None:
        """Learn the secrets in a value that is not written yet, so that they are hidden in every later line."""
        for value in values:
            clean_bounded(self._cleaner, value, self._payload_max_bytes)

    def append(self, event_type: EventType, **fields: Unpack[EventFields]) -> TraceEvent | None:
        """Write one event with its payload cleaned, and return it; `metadata.hidden` counts hidden values.

        Returns None if the run has ended, or belongs to another process.
        """
        redaction = _Redaction(self._cleaner, self._payload_max_bytes)
        spec, error = redaction.action(fields.get("action_spec")), redaction.error(fields.get("error"))
        result = redaction.open_field(fields.get("result"))
        metadata = redaction.open_field(fields.get("metadata")) or {}
        if redaction.hidden:
            metadata["hidden"] = redaction.hidden
        with self._lock:
            if not self._is_open():
                return None
            event = TraceEvent(
                seq=self._seq + 1,
                ts_utc=datetime.now(UTC),
                run_id=self.run_id,
                event_type=event_type,
                step_id=fields.get("step_id"),
                state_signature_before=fields.get("before"),
                state_signature_after=fields.get("after"),
                action_spec=spec,
                result=result,
                error=error,
                evidence_refs=list(fields.get("evidence", ())),
                metadata=metadata,
            )
            self._put(_line(event))
            if event_type in _SYNCED:
                self._sync()
            if self._audit is not None:
                self._audit.take(event)
            return event

    def keep(self, pieces: Iterable[Piece], **place: Unpack[EventPlace]) -> list[EvidenceRef]:
        """Store evidence and write `evidence_captured`, which refers to it and names what could not be stored.

        Returns the references to the stored evidence.
        """
        with self._lock:
            if not self._is_open():
                return []
            refs, lost = self._evidence.keep(pieces, place.get("step_id"), datetime.now(UTC))
            if refs or lost:
                metadata = {"manifest_uri": EVIDENCE_MANIFEST, **({"not_kept": lost} if lost else {})}
                self.append("evidence_captured", **place, evidence=refs, metadata=metadata)
            return refs

    def finish(self, result: Mapping[str, Any], after: StateSignature | None = None) -> None:
        """Write `run_finished`, sync, and release the folder; a second call does nothing.

        after: The last observed state. The lock is held until the manifest has the audit's head.
        """
        with self._lock:
            if self.closed:
                return
            metadata = {"status": result.get("outcome", "completed")}
            is_written = (
                self.append("run_finished", after=after, result=result, metadata=metadata) is not None
            )
            self.closed = True
            try:
                if self._audit is not None and is_written and (head := self._audit.finish()) is not None:
                    manifest = msgspec.structs.replace(self._manifest, audit=head)
                    write_whole(self.folder / RUN_MANIFEST, manifest_bytes(manifest))
                    self._audit.unmark(self.folder.parent)
            except OSError as error:
                self._not_synced = error.strerror or str(error)
            finally:
                os.close(self._descriptor)

    def _is_open(self) -> bool:
        """Return False once the run has ended, and in a forked child: the run is its parent's."""
        return not self.closed and os.getpid() == self._owner

    def _put(self, line: bytes) -> None:
        """Give the line its number and write it, or add it to the waiting lines."""
        if self._lost or len(self._waiting) >= WAITING_MAX:
            self._lost += 1  # without a number, so the lines on disk have no gap
        else:
            self._seq += 1
            self._waiting.append(line)
        try:
            self._flush()
            self._trouble = ""
        except OSError as error:
            self._trouble = error.strerror or str(error)

    def _flush(self) -> None:
        if os.fstat(self._descriptor).st_nlink == 0:
            raise OSError(errno.ENOENT, "its folder was removed during the run")
        while self._waiting:
            line = self._waiting[0]
            try:
                complete = os.write(self._descriptor, line) == len(line)
            except OSError:
                os.ftruncate(self._descriptor, self._size_bytes)
                raise
            if not complete:
                os.ftruncate(self._descriptor, self._size_bytes)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._size_bytes += len(line)
            self._waiting.popleft()

    def _sync(self) -> None:
        """Sync evidence first, so that a power cut leaves no line that refers to a missing file."""
        try:
            if self._durable:
                self._evidence.sync()
            os.fsync(self._descriptor)
        except OSError as error:
            self._not_synced = error.strerror or str(error)


def _line(event: TraceEvent) -> bytes:
    try:
        return _encode(event) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate in a name, which UTF-8 cannot hold
        return _encode(to_jsonable(msgspec.to_builtins(event))[0]) + b"\n"


# Evidence. A file is named by the SHA-256 of its content. So the same code in twenty steps is one file, and a changed
# file no longer fits its name. The order of writing keeps the manifest true at every moment. The files come first, each
# whole or absent. Then the manifest is replaced as a whole. Then comes the event that refers to them. A crash in
# between leaves a file that no manifest names yet, never a name without its file.


#: Kinds that are stored as text; the others are JSON.
_TEXTS = {"code", "proposal", "stdout", "stderr"}
#: Kinds that hold no payload: ids, codes and hashes, which redaction never touches.
_CONTRACT = {"state_before", "state_after"}

_content_bytes = msgspec.json.Encoder(order="deterministic").encode

Piece = tuple[EvidenceKind, Any]


class EvidenceStore:
    """Evidence of one run; its writer uses it, under its lock.

    `lost` are the kinds of evidence that could not be stored, `problem` is the system's reason.
    """

    def __init__(self, folder: Path, run_id: str, cleaner: Cleaner, max_bytes: int) -> None:
        self.folder = folder
        self.problem = ""
        self.lost: dict[str, None] = {}
        self._cleaner = cleaner
        self._max_bytes = max_bytes
        empty = msgspec.json.encode(empty_evidence(run_id))
        self._head = empty.removesuffix(b"]}") + b"\n"
        self._listed: list[bytes] = []  # one item a line, each encoded once
        self._unsynced: set[Path] = set()

    def keep(
        self, pieces: Iterable[Piece], step_id: str | None, now: datetime
    ) -> tuple[list[EvidenceRef], list[str]]:
        """Store pieces; return references to them, and the kinds of those that could not be stored.

        Errors of the disk are not raised.
        """
        items: list[EvidenceItem] = []
        lost: list[str] = []
        for kind, value in pieces:
            try:
                items.append(self._file(kind, value, step_id, now))
            except OSError as error:
                self.problem = error.strerror or str(error)
                lost.append(kind)
        if items:
            try:
                listed = [*self._listed, *map(_content_bytes, items)]
                write_whole(self.folder / EVIDENCE_MANIFEST, self._head + b",\n".join(listed) + b"\n]}\n")
                self._listed = listed
            except OSError as error:
                self.problem = error.strerror or str(error)
                lost += [item.kind for item in items]
                items = []
        self.lost |= dict.fromkeys(lost)
        return [EvidenceRef(item.kind, item.path, item.sha256) for item in items], lost

    def sync(self) -> None:
        """Sync files and manifest to the disk; raise `OSError`."""
        for path in (*self._unsynced, self.folder / EVIDENCE_MANIFEST, self.folder / EVIDENCE, self.folder):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self._unsynced.clear()

    def _file(self, kind: EvidenceKind, value: object, step_id: str | None, now: datetime) -> EvidenceItem:
        cleaned, content = self._content(kind, value)
        name = hashlib.sha256(content).hexdigest()
        relative = f"{EVIDENCE}/{name}.{'txt' if kind in _TEXTS else 'json'}"
        path = self.folder / relative
        if not _is_there(self.folder, relative, content):
            write_whole(path, content)
            self._unsynced.add(path)
        return EvidenceItem(
            kind=kind,
            path=relative,
            sha256=name,
            size_bytes=len(content),
            step_id=step_id,
            created_at=now,
            redacted=bool(cleaned.hidden),
            hidden=dict(cleaned.hidden),
            truncated_from=cleaned.truncated_from,
        )

    def _content(self, kind: EvidenceKind, value: object) -> tuple[Cleaned, bytes]:
        if kind in _CONTRACT:
            return Cleaned(value, {}), _content_bytes(value)
        cleaned = _cleaned(self._cleaner, value, self._max_bytes)
        if kind in _TEXTS:
            return cleaned, str(cleaned.value).encode(errors="backslashreplace")
        return cleaned, _content_bytes(cleaned.value)


def _is_there(folder: Path, relative: str, content: bytes) -> bool:
    try:
        return plain_files.read_file(folder, relative) == content
    except OSError:
        return False
