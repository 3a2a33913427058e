"""Evidence of a run's steps, stored by content.

A file is named by the SHA-256 of its content: the same code in twenty steps is one file, and a changed file no longer
fits its name. The order of writing keeps the manifest true at every moment: first the files, each whole or absent; then
the manifest, replaced as a whole; then the event that refers to them. A crash in between leaves a file that no manifest
names yet, never a name without its file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from healkit import plain_files
from healkit.contracts.runs import (
    EVIDENCE,
    EVIDENCE_MANIFEST,
    EvidenceItem,
    EvidenceKind,
    EvidenceRef,
    empty_evidence,
)
from healkit.sanitizer.cleaner import Cleaned, Cleaner, clean_bounded
from healkit.tracing.run_folders import write_whole

#: Kinds that are stored as text; the others are JSON.
_TEXTS = {"code", "proposal", "stdout", "stderr"}
#: Kinds that hold no payload: ids, codes and hashes, which redaction never touches.
_CONTRACT = {"state_before", "state_after"}

_encode = msgspec.json.Encoder(order="deterministic").encode

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
                listed = [*self._listed, *map(_encode, items)]
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

    def _file(self, kind: EvidenceKind, value: Any, step_id: str | None, now: datetime) -> EvidenceItem:
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

    def _content(self, kind: EvidenceKind, value: Any) -> tuple[Cleaned, bytes]:
        if kind in _CONTRACT:
            return Cleaned(value, {}), _encode(value)
        cleaned = clean_bounded(self._cleaner, value, self._max_bytes)
        if kind in _TEXTS:
            return cleaned, str(cleaned.value).encode(errors="backslashreplace")
        return cleaned, _encode(cleaned.value)


def _is_there(folder: Path, relative: str, content: bytes) -> bool:
    try:
        return plain_files.read(folder, relative) == content
    except OSError:
        return False
