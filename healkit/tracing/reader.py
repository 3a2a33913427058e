"""Reader of run folders.

Reading needs neither healkit's database nor the machine that wrote the run: a copied folder reads the same. Damaged
parts are named and passed over, and the rest is returned. A folder may still be written: trace.jsonl is read first and
the evidence manifest after it, because evidence is listed before an event refers to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from healkit.contracts.events import SCHEMA_VERSION, TraceEvent
from healkit.contracts.runs import (
    EVIDENCE_MANIFEST,
    RUN_MANIFEST,
    TRACE,
    EvidenceManifest,
    Problem,
    Run,
    RunManifest,
)
from healkit.errors import RunNotFound
from healkit.tracing.run_folders import is_being_written

#: Limit of a line that healkit writes; a longer one is skipped without being held in memory.
LINE_MAX_BYTES = 4 * 1024 * 1024

_decode_event = msgspec.json.Decoder(TraceEvent).decode
_POSITION = re.compile(r" \(byte (\d+)\)")
Manifest = TypeVar("Manifest", RunManifest, EvidenceManifest)


def read_run(path: str | Path) -> Run:
    """Read all that is readable of a run folder, and list the rest in `problems`; raise `RunNotFound`.

    `validate_run` checks whether the parts fit together.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise RunNotFound(
            f"There is no run folder {str(path)!r}.", hint="`healkit trace show last` shows the newest."
        )
    problems: list[Problem] = []
    manifest = _read_manifest(folder, RUN_MANIFEST, RunManifest, problems)
    events, lines = _read_events(folder, problems)
    evidence = _read_manifest(folder, EVIDENCE_MANIFEST, EvidenceManifest, problems)
    return Run(folder, manifest, events, evidence.items if evidence else [], problems, lines)


def _read_events(folder: Path, problems: list[Problem]) -> tuple[list[TraceEvent], list[int]]:
    events: list[TraceEvent] = []
    lines: list[int] = []
    try:
        with (folder / TRACE).open("rb") as file:
            for number, line in enumerate(_lines(file), start=1):
                event = _event(folder, number, line, problems)
                if event is not None:
                    events.append(event)
                    lines.append(number)
    except OSError as error:
        problems.append(
            Problem("trace_missing", TRACE, None, f"it cannot be read: {error.strerror or error}.")
        )
    return events, lines


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines with their ends; None for a line that is too long to read."""
    while line := file.readline(LINE_MAX_BYTES):
        if line.endswith(b"\n") or len(line) < LINE_MAX_BYTES:
            yield line
            continue
        while (rest := file.readline(LINE_MAX_BYTES)) and not rest.endswith(b"\n"):
            pass
        yield None


def _event(folder: Path, number: int, line: bytes | None, problems: list[Problem]) -> TraceEvent | None:
    if line is None:
        problems.append(Problem("damaged_line", TRACE, number, f"is longer than {LINE_MAX_BYTES:,} bytes."))
        return None
    if not line.endswith(b"\n"):
        if is_being_written(folder):
            problems.append(Problem("in_progress", TRACE, number, "is being written.", fault=False))
        else:
            said = (
                f"ends after {len(line):,} bytes without a line end: its writer died, or the disk was full."
            )
            problems.append(Problem("torn_line", TRACE, number, said))
        return None
    try:
        return _decode_event(line)
    except msgspec.ValidationError as error:
        problems.append(Problem("damaged_line", TRACE, number, f"is no event: {error}."))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = _POSITION.sub(lambda m: f" at column {int(m[1]) + 1}", str(error))
        problems.append(Problem("damaged_line", TRACE, number, f"is not JSON: {what}."))
    except RecursionError:
        problems.append(Problem("damaged_line", TRACE, number, "is nested too deeply to be read."))
    except (ValueError, OverflowError) as error:  # a number or a time that Python cannot hold
        problems.append(Problem("damaged_line", TRACE, number, f"cannot be read: {error}."))
    return None


def _read_manifest(folder: Path, name: str, kind: type[Manifest], problems: list[Problem]) -> Manifest | None:
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        problems.append(
            Problem("manifest_missing", name, None, f"it cannot be read: {error.strerror or error}.")
        )
        return None
    try:
        manifest = msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        problems.append(Problem("manifest_damaged", name, None, f"it cannot be understood: {error}."))
        return None
    if manifest.schema_version != SCHEMA_VERSION:
        said = f"it has schema version {manifest.schema_version}, and this healkit reads {SCHEMA_VERSION}."
        problems.append(Problem("unknown_version", name, None, said))
    return manifest
