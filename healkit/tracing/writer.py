"""The writer of a run: an event a line, without a gap.

Each event is one write of one whole line, made when the thing has happened; kill -9 after it cannot undo it. The disk
itself is waited for when the run ends and when its policy ends it, not for each line.

A disk that takes nothing more never alters what a tool does. The line it tore is cut off again, the event waits in
memory with its number, those after it wait behind it, and all of them go out, in order, as soon as one can. What still
waits at the end is lost with the process, and `problem` says how much.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from healkit.contracts.encoding import to_jsonable
from healkit.contracts.events import ActionSpec, ErrorObject, EventType, EvidenceRef, TraceEvent
from healkit.contracts.runs import RunManifest
from healkit.contracts.signature import StateSignature
from healkit.errors import RunFolderError
from healkit.rendering import plain
from healkit.tracing.evidence import EvidenceStore, Piece
from healkit.tracing.folders import begin_folder, discard, publish
from healkit.tracing.redaction import Cleaner, Redactor

#: How many events wait in memory for a disk; a run whose policy holds has fewer.
WAITING_MAX = 5000
_SYNCED: frozenset[str] = frozenset({"run_finished", "policy_halt"})

_encode = msgspec.json.Encoder().encode


class RunWriter:
    """Writes one run folder, from `run_started` to `run_finished`; safe to use from several threads.

    Raises `RunFolderError`, `RunExists` or `RunLocked` when it cannot be begun. After that nothing of the disk's is
    raised: `problem` holds one sentence on what could not be written.

    durable: whether evidence too is brought to the disk itself where the trace is; each file of it costs as much again.
    """

    def __init__(
        self,
        runs_dir: Path,
        manifest: RunManifest,
        cleaner: Cleaner,
        *,
        durable: bool = False,
    ) -> None:
        self.run_id = manifest.run_id
        self._cleaner = cleaner
        self._payload_max_bytes = manifest.redaction_policy.payload_max_bytes
        self._lock = threading.RLock()
        self._owner = os.getpid()
        self._seq = 0
        self._size_bytes = 0
        self._waiting: deque[bytes] = deque()
        self._lost = 0
        self._trouble = self._not_synced = ""
        self._durable = durable
        self.folder, self._descriptor = begin_folder(runs_dir, manifest)
        try:
            self.append("run_started")
            if self._trouble:
                discard(self.folder)
                raise RunFolderError(f"No run can be recorded in {str(runs_dir)!r}: {self._trouble}.")
            self.folder = publish(self.folder, runs_dir, self.run_id)
        except BaseException:
            os.close(self._descriptor)
            self._descriptor = -1
            raise
        self._evidence = EvidenceStore(
            self.folder, self.run_id, cleaner, manifest.redaction_policy.evidence_max_bytes
        )

    @property
    def problem(self) -> str:
        """One sentence for the user on what is missing in the record; empty when nothing is."""
        parts = []
        if waiting := len(self._waiting) + self._lost:
            parts.append(f"{plain.count(waiting, 'event')} could not be written ({self._trouble})")
        if self._evidence.lost:
            kinds = ", ".join(self._evidence.lost)
            parts.append(f"evidence could not be kept ({kinds}: {self._evidence.problem})")
        if self._not_synced:
            parts.append(f"it could not be brought to the disk ({self._not_synced})")
        if not parts:
            return ""
        return f"The record of run {self.run_id!r} in {str(self.folder)!r} is not whole: {'; '.join(parts)}."

    @property
    def closed(self) -> bool:
        """Whether `run_finished` has been written, or would have been."""
        return self._descriptor < 0

    def append(
        self,
        event_type: EventType,
        *,
        step_id: str | None = None,
        before: StateSignature | None = None,
        after: StateSignature | None = None,
        action_spec: ActionSpec | None = None,
        result: Mapping[str, Any] | None = None,
        error: ErrorObject | None = None,
        evidence: Iterable[EvidenceRef] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Write what has just happened. Payload is cleaned here; what was hidden is counted in `metadata.hidden`."""
        redactor = Redactor(self._cleaner, self._payload_max_bytes)
        spec, fault = redactor.action(action_spec), redactor.error(error)
        came, known = redactor.open_field(result), redactor.open_field(metadata) or {}
        if redactor.hidden:
            known["hidden"] = redactor.hidden
        with self._lock:
            if self._descriptor < 0 or os.getpid() != self._owner:
                return  # the run has ended, or is the parent process's
            event = TraceEvent(
                seq=self._seq + 1,
                ts_utc=datetime.now(UTC),
                run_id=self.run_id,
                event_type=event_type,
                step_id=step_id,
                state_signature_before=before,
                state_signature_after=after,
                action_spec=spec,
                result=came,
                error=fault,
                evidence_refs=list(evidence),
                metadata=known,
            )
            self._put(_line(event))
            if event_type in _SYNCED:
                self._sync()

    def keep(
        self,
        pieces: Iterable[Piece],
        *,
        step_id: str | None = None,
        before: StateSignature | None = None,
        after: StateSignature | None = None,
    ) -> None:
        """Keep evidence and write `evidence_captured`, which refers to it and names what could not be kept."""
        with self._lock:
            if self._descriptor < 0 or os.getpid() != self._owner:
                return
            refs, lost = self._evidence.keep(pieces, step_id, datetime.now(UTC))
            if refs or lost:
                known = {"not_kept": lost} if lost else None
                self.append(
                    "evidence_captured",
                    step_id=step_id,
                    before=before,
                    after=after,
                    evidence=refs,
                    metadata=known,
                )

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write `run_finished`, wait for the disk, and let go of the folder; safe to call twice."""
        with self._lock:
            if self._descriptor < 0:
                return
            self.append("run_finished", result=result)
            os.close(self._descriptor)
            self._descriptor = -1

    def _put(self, line: bytes) -> None:
        """Number the line and write it, or let it wait behind those that wait."""
        if self._lost or len(self._waiting) >= WAITING_MAX:
            self._lost += 1  # no number is given: what is on disk stays without a gap
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
            raise OSError(errno.ENOENT, "its folder was removed while the run went on")
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
        """Evidence first, so that a power cut leaves no line that refers to what is not there."""
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
