"""Reader of run folders.

Reading needs neither healkit's database nor the machine that wrote the run: a copied folder reads the same. Damaged
parts are named and passed over, and the rest is returned. A folder may still be written: trace.jsonl is read first and
the evidence manifest after it, because evidence is listed before an event refers to it. A folder of an
earlier schema version reads like one of today (`healkit.tracing.old_runs`).
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from healkit import plain_files
from healkit.contracts.runs import (
    EVIDENCE_MANIFEST,
    RUN_MANIFEST,
    SCHEMA_VERSION,
    TRACE,
    EvidenceManifest,
    Problem,
    Run,
    RunManifest,
    TraceEvent,
)
from healkit.errors import RunNotFound, named
from healkit.tracing import old_runs
from healkit.tracing.run_folders import is_being_written

#: Limit of a line that healkit writes; a longer one is skipped without being held in memory.
LINE_MAX_BYTES = 4 * 1024 * 1024

#: Versions that can be read.
KNOWN_VERSIONS = (SCHEMA_VERSION, old_runs.SECOND_VERSION, old_runs.OLD_VERSION)

_decode_event = msgspec.json.Decoder(TraceEvent).decode
_POSITION = re.compile(r" \(byte (\d+)\)")
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
Struct = TypeVar("Struct", bound=msgspec.Struct)
Manifest = TypeVar("Manifest", RunManifest, EvidenceManifest)


def read_run(path: str | Path) -> Run:
    """Read all that is readable of a run folder, and list the rest in `problems`; raise `RunNotFound`.

    `validate_run` checks whether the parts fit together.
    """
    if not isinstance(path, str | Path):
        raise RunNotFound(f"{named(path)} is no run folder.", hint="Give its path.")
    folder = Path(path)
    if not folder.is_dir():
        raise RunNotFound(
            f"There is no run folder {str(path)!r}.", hint="`healkit trace show last` shows the newest."
        )
    problems: list[Problem] = []
    manifest = _read_manifest(folder, RUN_MANIFEST, RunManifest, problems)
    events, lines = _read_events(folder, manifest, problems)
    evidence = _read_manifest(folder, EVIDENCE_MANIFEST, EvidenceManifest, problems)
    return Run(folder, manifest, events, evidence.items if evidence else [], problems, lines)


def _read_events(
    folder: Path, manifest: RunManifest | None, problems: list[Problem]
) -> tuple[list[TraceEvent], list[int]]:
    decode = _decoder(manifest)
    events: list[TraceEvent] = []
    lines: list[int] = []
    try:
        with plain_files.opened(folder, TRACE) as file:
            for number, line in enumerate(_lines(file), start=1):
                event = _event(folder, number, line, decode, problems)
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


def _decoder(manifest: RunManifest | None) -> Callable[[bytes], TraceEvent]:
    """Return what decodes a line; without a manifest, a line that is not of today is tried as an old one."""
    known = None if manifest is None else _decode_object(msgspec.json.encode(manifest))
    old_versions = KNOWN_VERSIONS[1:]

    def decode_old(version: str, line: bytes) -> TraceEvent:
        return _converted(lambda: old_runs.as_event(_decode_object(line), known, version), TraceEvent)

    def decode_any(line: bytes) -> TraceEvent:
        try:
            return _decode_event(line)
        except msgspec.ValidationError:
            for version in old_versions:
                with contextlib.suppress(msgspec.ValidationError):
                    return decode_old(version, line)
            raise

    if manifest is None:
        return decode_any
    version = manifest.schema_version
    return functools.partial(decode_old, version) if version in old_versions else _decode_event


def _event(
    folder: Path,
    number: int,
    line: bytes | None,
    decode: Callable[[bytes], TraceEvent],
    problems: list[Problem],
) -> TraceEvent | None:
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
        return decode(line)
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
        content = plain_files.read(folder, name)
    except OSError as error:
        problems.append(
            Problem("manifest_missing", name, None, f"it cannot be read: {error.strerror or error}.")
        )
        return None
    try:
        manifest = _manifest_of(content, kind)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        problems.append(Problem("manifest_damaged", name, None, f"it cannot be understood: {error}."))
        return None
    if manifest.schema_version not in KNOWN_VERSIONS:
        readable = " and ".join(KNOWN_VERSIONS)
        said = f"it has schema version {manifest.schema_version!r}, and this healkit reads {readable}."
        problems.append(Problem("unknown_version", name, None, said))
    return manifest


def _manifest_of(content: bytes, kind: type[Manifest]) -> Manifest:
    version = msgspec.json.decode(content, type=_Versioned).schema_version
    if version != 1:
        return msgspec.json.decode(content, type=kind)
    change = old_runs.as_manifest if kind is RunManifest else old_runs.as_evidence_manifest
    return _converted(lambda: change(_decode_object(content)), kind)


def _converted(change: Callable[[], dict[str, Any]], kind: type[Struct]) -> Struct:
    """Return what an old file says as today's type; raise `msgspec.ValidationError` where it cannot be."""
    try:
        return msgspec.convert(change(), kind)
    except (AttributeError, LookupError, TypeError) as error:
        raise msgspec.ValidationError("a field of an older version is missing or of another type") from error


class _Versioned(msgspec.Struct):
    """Manifest of any version."""

    schema_version: Any
