"""Run folders that were written: read, validated, compared.

Reading needs neither healkit's database nor the machine that wrote the run: a copied folder reads the same. Damaged
parts are named and skipped, and the rest is returned. A folder may still be written. So trace.jsonl is read first and
the evidence manifest after it, because evidence is listed before an event refers to it.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import re
from collections.abc import Callable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from healkit.core import plain_files
from healkit.core.crossing.codec import BadValue
from healkit.errors import EvidenceChanged, RunNotFound, catalogue, named
from healkit.parts.runs.contract import (
    ALGORITHM,
    EVIDENCE,
    EVIDENCE_MANIFEST,
    RUN_MANIFEST,
    SCHEMA_VERSION,
    TRACE,
    Difference,
    EvidenceItem,
    EvidenceManifest,
    Problem,
    Run,
    RunDiff,
    RunManifest,
    StateSignature,
    TraceEvent,
    state_key,
)
from healkit.parts.runs.run_folders import is_being_written
from healkit.parts.views import view_files

#: Limit of a line that healkit writes; a longer one is skipped without being held in memory.
LINE_MAX_BYTES = 4 * 1024 * 1024

_decode_event = msgspec.json.Decoder(TraceEvent).decode
_POSITION = re.compile(r" \(byte (\d+)\)")
Manifest = TypeVar("Manifest", RunManifest, EvidenceManifest)


def read_run(path: str | Path) -> Run:
    """Read all that is readable of a run folder, and list the rest in `problems`; raise `RunNotFound`.

    `validate_run` checks whether the parts fit together.
    """
    if not isinstance(path, str | Path):
        raise RunNotFound(f"{named(path)} is not a run folder.", hint="Give its path.")
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
        with plain_files.open_regular(folder, TRACE) as file:
            for number, line in enumerate(_lines(file), start=1):
                if line is not None and not line.endswith(b"\n"):
                    problems.append(_torn(folder, number, line))
                elif isinstance(event := _event(line), str):
                    problems.append(Problem("damaged_line", TRACE, number, event))
                else:
                    events.append(event)
                    lines.append(number)
    except OSError as error:
        message = f"it cannot be read: {error.strerror or error}."
        problems.append(Problem("trace_missing", TRACE, None, message))
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


def _torn(folder: Path, number: int, line: bytes) -> Problem:
    if is_being_written(folder):
        return Problem("in_progress", TRACE, number, "is being written.", fault=False)
    message = f"ends after {len(line):,} bytes without a line end: its writer died, or the disk was full."
    return Problem("torn_line", TRACE, number, message)


def _event(line: bytes | None) -> TraceEvent | str:
    """Return the event of a line, or what is wrong with it."""
    if line is None:
        return f"is longer than {LINE_MAX_BYTES:,} bytes."
    try:
        return _decode_event(line)
    except msgspec.ValidationError as error:
        return f"is not an event: {error}."
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"is not JSON: {_POSITION.sub(lambda m: f' at column {int(m[1]) + 1}', str(error))}."
    except RecursionError:
        return "is nested too deeply to be read."
    except (ValueError, OverflowError) as error:  # a number or a time that Python cannot hold
        return f"cannot be read: {error}."


def _read_manifest(folder: Path, name: str, kind: type[Manifest], problems: list[Problem]) -> Manifest | None:
    try:
        content = plain_files.read_file(folder, name)
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
        message = (
            f"it has schema version {manifest.schema_version!r}, but this healkit reads {SCHEMA_VERSION}."
        )
        problems.append(Problem("unknown_version", name, None, message))
    return manifest


# Validation. Each rule is one small function over what was read. Together they are the contract. It demands numbers
# without a gap, one run, a beginning and an end, and codes of the catalogue. Signatures must fit their parts, and
# evidence must fit its name and the manifest. Times are not checked: a clock may be set back, and the numbers give the
# order.


Rule = Callable[[Run], Iterator[Problem]]
_READ_BYTES = 1 << 20
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: File name → the type that it describes.
FILES: dict[str, type[msgspec.Struct]] = {
    "trace_event": TraceEvent,
    "run_manifest": RunManifest,
    "evidence_manifest": EvidenceManifest,
}


def validate_run(run: Run | str | Path, views: Path | None = None) -> Run:
    """Return the run with every problem found, first those of reading it; raise `RunNotFound`.

    views: The folder of the files of views; without it, the views that the run names are not checked.
    """
    read = run if isinstance(run, Run) else read_run(run)
    rules: tuple[Rule, ...] = RULES if views is None else (*RULES, functools.partial(_views, views))
    problems = [problem for rule in rules for problem in _spared(rule, read)]
    return dataclasses.replace(read, problems=[*read.problems, *problems])


def in_order(run: Run) -> bool:
    """Return True if nothing is damaged; this includes runs that a crash ended, or that are still running."""
    return not any(problem.fault for problem in run.problems)


def _spared(rule: Rule, run: Run) -> Iterator[Problem]:
    """Yield the findings of a rule; an exception in it is reported as a problem and ends only this rule."""
    try:
        yield from rule(run)
    except Exception as error:  # noqa: BLE001 - a folder may hold anything
        name = getattr(rule, "__name__", "views").strip("_")
        message = f"{name} could not be checked completely: {error or type(error).__name__}."
        yield Problem("unchecked", TRACE, None, message)


def _numbers(run: Run) -> Iterator[Problem]:
    expected, sequence_numbers = 1, set()
    damaged = {problem.line for problem in run.problems if problem.kind == "damaged_line"}
    for line, event in _numbered(run):
        if event.seq in sequence_numbers:
            yield Problem("seq_repeated", TRACE, line, f"repeats seq {event.seq}.")
        elif event.seq > expected:
            missing = f"{expected}" if event.seq == expected + 1 else f"{expected} to {event.seq - 1}"
            because = " (the line before it is damaged)" if line - 1 in damaged else ""
            yield Problem("seq_gap", TRACE, line, f"has seq {event.seq}, but {missing} is missing{because}.")
        elif event.seq < expected:
            yield Problem("seq_gap", TRACE, line, f"has seq {event.seq} after {expected - 1}.")
        sequence_numbers.add(event.seq)
        expected = max(expected, event.seq + 1)


def _identity(run: Run) -> Iterator[Problem]:
    if run.manifest is not None and run.manifest.run_id != run.path.resolve().name:
        message = f"it belongs to run {run.manifest.run_id!r}, but the folder is {run.path.resolve().name!r}."
        yield Problem(
            "wrong_run_id", RUN_MANIFEST, None, message, fault=False
        )  # a copy may have another name
    for line, event in _numbered(run):
        if event.run_id != run.run_id:
            yield Problem(
                "wrong_run_id", TRACE, line, f"belongs to run {event.run_id!r}, not to {run.run_id!r}."
            )


def _order(run: Run) -> Iterator[Problem]:
    ended = False
    for position, (line, event) in enumerate(_numbered(run)):
        if (event.event_type == "run_started") != (position == 0):
            message = (
                "is the first event, but is not run_started." if position == 0 else "is a second run_started."
            )
            yield Problem("wrong_order", TRACE, line, message)
        if ended:
            yield Problem("wrong_order", TRACE, line, f"is {event.event_type}, after run_finished.")
        ended = ended or event.event_type == "run_finished"
    if not ended:
        if is_being_written(run.path):
            yield Problem("in_progress", TRACE, None, "the run has not ended yet.", fault=False)
        else:
            last = f" Its last event is {run.events[-1].event_type}." if run.events else ""
            message = f"the run has no run_finished: its process died before it ended.{last}"
            yield Problem("unfinished", TRACE, None, message, fault=False)


def _codes(run: Run) -> Iterator[Problem]:
    for line, event in _numbered(run):
        if event.error is None:
            continue
        if event.error.error_code not in catalogue():
            message = f"has the error code {event.error.error_code!r}, which is not in the catalogue."
            yield Problem("unknown_code", TRACE, line, message)
        if event.error.schema_version != SCHEMA_VERSION:
            message = f"has an error of schema version {event.error.schema_version}."
            yield Problem("unknown_version", TRACE, line, message)


def _signatures(run: Run) -> Iterator[Problem]:
    for line, event in _numbered(run):
        for name, signature in (
            ("state_signature_before", event.state_signature_before),
            ("state_signature_after", event.state_signature_after),
        ):
            if signature is not None and (fault := _signature_fault(signature)):
                yield Problem("wrong_signature", TRACE, line, f"has a {name} {fault}.")


def _signature_fault(signature: StateSignature) -> str:
    if signature.algorithm != ALGORITHM:
        return f"of algorithm {signature.algorithm!r}, which this healkit does not know"
    if signature.state_key != state_key(signature.tool, signature.failure, signature.arguments):
        return "whose state_key does not match its parts"
    return ""


def _references(run: Run) -> Iterator[Problem]:
    listed = {(item.kind, item.path, item.sha256) for item in run.evidence}
    for line, event in _numbered(run):
        for ref in event.evidence_refs:
            if (ref.kind, ref.uri, ref.sha256) not in listed:
                message = f"refers to {ref.uri} ({ref.kind}), which the evidence manifest does not list."
                yield Problem("unlisted_reference", TRACE, line, message)


def _evidence(run: Run) -> Iterator[Problem]:
    for path, item in {item.path: item for item in run.evidence}.items():
        if fault := _evidence_fault(run, item):
            kind, sentence = fault
            yield Problem("evidence_missing" if kind else "evidence_changed", path, None, sentence)


def _evidence_fault(run: Run, item: EvidenceItem) -> tuple[bool, str] | None:
    """Return (missing, sentence) for faulty evidence, None for good."""
    try:
        digest, size_bytes = _hash_of(run.path, item.path)
    except FileNotFoundError:
        return True, f"it is listed in {EVIDENCE_MANIFEST}, but the file does not exist."
    except OSError as error:
        return True, f"it cannot be read: {error.strerror or error}."
    if digest != item.sha256:
        return False, f"its SHA-256 is {digest[:12]}…, but the manifest says {item.sha256[:12]}…."
    if size_bytes != item.size_bytes:
        return False, f"it has {size_bytes:,} bytes, but the manifest says {item.size_bytes:,}."
    if Path(item.path).stem != item.sha256:
        return False, "its name is not its hash."
    return None


def _run_files(run: Run) -> Iterator[Problem]:
    """Check the files with the outputs of tools."""
    for line, event in _numbered(run):
        for name, sha256 in _named_files(event, "run_files"):
            try:
                run.read_file(name, sha256)
            except EvidenceChanged as error:
                yield Problem("evidence_changed", name, None, error.message)
            except OSError as error:
                message = (
                    f"line {line} of {TRACE} names it, but it cannot be read: {error.strerror or error}."
                )
                yield Problem("evidence_missing", name, None, message)


def _views(folder: Path, run: Run) -> Iterator[Problem]:
    """Check the files of the views that the run names; a missing one may have been evicted or removed."""
    named = {file: name for _, event in _numbered(run) for name, file in _named_files(event, "view_files")}
    for file, name in named.items():
        try:
            view_files.check_view(folder, file)
        except FileNotFoundError:
            message = f"the file of view {name!r} is not in {str(folder)!r}: removed, evicted, or on another machine."
            yield Problem("evidence_missing", file, None, message, fault=False)
        except (OSError, BadValue) as error:
            why = error.strerror or error if isinstance(error, OSError) else error
            yield Problem(
                "evidence_changed",
                file,
                None,
                f"the file of view {name!r} has changed since it was kept: {why}.",
            )


def _named_files(event: TraceEvent, key: str) -> list[tuple[str, str]]:
    """Return the files that an event names, with their hashes; entries that are not text are left out."""
    pairs = [*event.metadata.items(), *(event.result or {}).items()]
    file_maps = [files for name, files in pairs if name == key and isinstance(files, dict)]
    return [(name, text) for files in file_maps for name, text in files.items() if isinstance(text, str)]


def _extra(run: Run) -> Iterator[Problem]:
    listed = {item.path for item in run.evidence}
    names = sorted(p.name for p in (run.path / EVIDENCE).iterdir()) if (run.path / EVIDENCE).is_dir() else []
    live = is_being_written(run.path)
    if not live:
        for file in sorted(run.path.glob("*.new")):
            yield Problem("leftover", file.name, None, "its writer died during the write.", fault=False)
    for name in names:
        path = f"{EVIDENCE}/{name}"
        if name.endswith(".new") and not live:
            yield Problem("leftover", path, None, "its writer died during the write.", fault=False)
        elif path not in listed and not live:
            # A file named by its hash is from a writer that died before it could list it.
            has_hash_name = _is_own_content(run.path, path)
            message = (
                "its writer died before it was listed."
                if has_hash_name
                else f"{EVIDENCE_MANIFEST} does not list it."
            )
            yield Problem("evidence_extra", path, None, message, fault=not has_hash_name)


def _hash_of(folder: Path, name: str) -> tuple[str, int]:
    """Return the SHA-256 and the size of a file of the folder; raise `OSError`."""
    size_bytes, digest = 0, hashlib.sha256()
    with plain_files.open_regular(folder, name) as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
            size_bytes += len(chunk)
    return digest.hexdigest(), size_bytes


def _is_own_content(folder: Path, name: str) -> bool:
    try:
        return _hash_of(folder, name)[0] == Path(name).stem
    except OSError:
        return False


def _numbered(run: Run) -> Iterator[tuple[int, TraceEvent]]:
    return zip(run.lines, run.events, strict=True)


#: In the order in which a person would check.
RULES: tuple[Rule, ...] = (
    _order, _numbers, _identity, _codes, _signatures, _references, _evidence, _run_files, _extra,
)  # fmt: skip


def schemas() -> dict[str, dict[str, Any]]:
    """Return name → schema (draft 2020-12) of one line of trace.jsonl and of each manifest."""
    schemas_by_name = {
        name: {"$schema": _DIALECT, **msgspec.json.schema(kind)} for name, kind in FILES.items()
    }
    # The codes come from the error classes, which a type annotation cannot name.
    schemas_by_name["trace_event"]["$defs"]["ErrorObject"]["properties"]["error_code"] = {
        "enum": list(catalogue())
    }
    for schema in schemas_by_name.values():
        for part in schema["$defs"].values():
            if "description" in part:  # a docstring, which Python before 3.13 keeps indented
                part["description"] = cleandoc(part["description"])
    return schemas_by_name


# Differences between two runs, event by event. Times, durations, ids and numbers that differ between any two runs of
# the same thing are left out. The rest is aligned by event and step (Ratcliff and Obershelp's matching, as in
# `difflib`). So one more event in the middle does not make all later events differ.


#: Fields that differ between any two runs, or between two versions of healkit, at any place in an event.
VOLATILE = frozenset(
    {"created_at", "duration_ms", "log_id", "run_id", "schema_version", "seq", "trace_id", "ts_utc"}
)
_ABSENT = None


def diff_runs(left: Run, right: Run) -> RunDiff:
    """Compare two runs: return events that only one has, and pairs with fields that differ, in order."""
    same, differences = 0, list[Difference]()
    matcher = difflib.SequenceMatcher(None, _keys(left), _keys(right), autojunk=False)
    for tag, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        ours, theirs = left.events[left_start:left_end], right.events[right_start:right_end]
        if tag == "equal":
            pairs = [Difference(a, b, differing(a, b)) for a, b in zip(ours, theirs, strict=True)]
            differences += [pair for pair in pairs if pair.fields]
            same += sum(not pair.fields for pair in pairs)
        else:
            differences += [Difference(event, None, {}) for event in ours]
            differences += [Difference(None, event, {}) for event in theirs]
    return RunDiff(left, right, same, differences)


def _keys(run: Run) -> list[tuple[str, str | None]]:
    return [(event.event_type, event.step_id) for event in run.events]


def differing(left: TraceEvent, right: TraceEvent) -> dict[str, tuple[Any, Any]]:
    """Return the fields in which two events differ: path → both values, None for a missing field."""
    ours, theirs = dict(_leaves(left)), dict(_leaves(right))
    return {
        path: (ours.get(path, _ABSENT), theirs.get(path, _ABSENT))
        for path in dict.fromkeys([*ours, *theirs])
        if ours.get(path, _ABSENT) != theirs.get(path, _ABSENT)
    }


def _leaves(event: TraceEvent) -> Iterator[tuple[str, Any]]:
    fields = msgspec.to_builtins(event)
    # By kind: the same evidence in another place of the list is the same evidence.
    fields["evidence_refs"] = {ref["kind"]: ref["sha256"] for ref in fields.get("evidence_refs", [])}
    yield from _walk(fields, "")


def _walk(value: object, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in VOLATILE:
                yield from _walk(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and len(value) <= 100:
        for number, item in enumerate(value):
            yield from _walk(item, f"{path}[{number}]")
    else:
        yield path, value
