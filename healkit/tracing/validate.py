"""Validation of run folders.

Each rule is one small function over what was read. Together they are the contract: numbers without a gap, one run, a
beginning and an end, codes of the catalogue, signatures that fit their parts, and evidence that fits its name and the
manifest. Times are not checked: a clock may be set back, and the numbers give the order.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

import msgspec

from healkit import plain_files
from healkit.contracts.runs import (
    ALGORITHM,
    EVIDENCE,
    EVIDENCE_MANIFEST,
    RUN_MANIFEST,
    TRACE,
    EvidenceItem,
    EvidenceManifest,
    Problem,
    Run,
    RunManifest,
    StateSignature,
    TraceEvent,
    state_key,
)
from healkit.errors import EvidenceChanged, catalogue
from healkit.tracing.reader import KNOWN_VERSIONS, read_run
from healkit.tracing.run_folders import is_being_written
from healkit.values import view_files
from healkit.values.plain import BadValue

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
    """Return the run with every problem found, those of reading it first; raise `RunNotFound`.

    views: the folder of the files of views; without it, those that the run names are not checked.
    """
    read = run if isinstance(run, Run) else read_run(run)
    rules: tuple[Rule, ...] = RULES if views is None else (*RULES, functools.partial(_views, views))
    found = [problem for rule in rules for problem in _spared(rule, read)]
    return dataclasses.replace(read, problems=[*read.problems, *found])


def in_order(run: Run) -> bool:
    """Return True if nothing is damaged; a run that a crash ended, or that goes on, may be in order."""
    return not any(problem.fault for problem in run.problems)


def _spared(rule: Rule, run: Run) -> Iterator[Problem]:
    """Yield what a rule finds; one that raises is named as a problem, and costs its own rest only."""
    try:
        yield from rule(run)
    except Exception as error:  # noqa: BLE001 - a folder may hold anything
        name = getattr(rule, "__name__", "views").strip("_")
        said = f"{name} could not be checked to the end: {error or type(error).__name__}."
        yield Problem("unchecked", TRACE, None, said)


def _numbers(run: Run) -> Iterator[Problem]:
    expected, seen = 1, set()
    damaged = {problem.line for problem in run.problems if problem.kind == "damaged_line"}
    for line, event in _numbered(run):
        if event.seq in seen:
            yield Problem("seq_repeated", TRACE, line, f"repeats seq {event.seq}.")
        elif event.seq > expected:
            missing = f"{expected}" if event.seq == expected + 1 else f"{expected} to {event.seq - 1}"
            because = " (a damaged line stands before it)" if line - 1 in damaged else ""
            yield Problem("seq_gap", TRACE, line, f"has seq {event.seq}, and {missing} is missing{because}.")
        elif event.seq < expected:
            yield Problem("seq_gap", TRACE, line, f"has seq {event.seq} after {expected - 1}.")
        seen.add(event.seq)
        expected = max(expected, event.seq + 1)


def _identity(run: Run) -> Iterator[Problem]:
    if run.manifest is not None and run.manifest.run_id != run.path.resolve().name:
        said = f"it is of run {run.manifest.run_id!r}, and the folder is {run.path.resolve().name!r}."
        yield Problem("wrong_run_id", RUN_MANIFEST, None, said, fault=False)  # a copy may have another name
    for line, event in _numbered(run):
        if event.run_id != run.run_id:
            yield Problem("wrong_run_id", TRACE, line, f"is of run {event.run_id!r}, not of {run.run_id!r}.")


def _order(run: Run) -> Iterator[Problem]:
    ended = False
    for position, (line, event) in enumerate(_numbered(run)):
        if (event.event_type == "run_started") != (position == 0):
            said = "is no run_started, and it is first." if position == 0 else "is a second run_started."
            yield Problem("wrong_order", TRACE, line, said)
        if ended:
            yield Problem("wrong_order", TRACE, line, f"is {event.event_type}, after run_finished.")
        ended = ended or event.event_type == "run_finished"
    if not ended:
        if is_being_written(run.path):
            yield Problem("in_progress", TRACE, None, "the run is still going on.", fault=False)
        else:
            last = f" Its last event is {run.events[-1].event_type}." if run.events else ""
            said = f"the run has no run_finished: its process died before it ended.{last}"
            yield Problem("unfinished", TRACE, None, said, fault=False)


def _codes(run: Run) -> Iterator[Problem]:
    for line, event in _numbered(run):
        if event.error is None:
            continue
        if event.error.error_code not in catalogue():
            said = f"has the error code {event.error.error_code!r}, which is not in the catalogue."
            yield Problem("unknown_code", TRACE, line, said)
        if event.error.schema_version not in KNOWN_VERSIONS:
            said = f"has an error of schema version {event.error.schema_version}."
            yield Problem("unknown_version", TRACE, line, said)


def _signatures(run: Run) -> Iterator[Problem]:
    for line, event in _numbered(run):
        for name, signature in (
            ("state_signature_before", event.state_signature_before),
            ("state_signature_after", event.state_signature_after),
        ):
            if signature is not None and (said := _signature_fault(signature)):
                yield Problem("wrong_signature", TRACE, line, f"has a {name} {said}.")


def _signature_fault(signature: StateSignature) -> str:
    if signature.algorithm != ALGORITHM:
        return f"of algorithm {signature.algorithm!r}, which this healkit does not know"
    if signature.state_key != state_key(signature.tool, signature.failure, signature.arguments):
        return "whose state_key does not fit its parts"
    return ""


def _references(run: Run) -> Iterator[Problem]:
    listed = {(item.kind, item.path, item.sha256) for item in run.evidence}
    for line, event in _numbered(run):
        for ref in event.evidence_refs:
            if (ref.kind, ref.uri, ref.sha256) not in listed:
                said = f"refers to {ref.uri} ({ref.kind}), which the evidence manifest does not list."
                yield Problem("unlisted_reference", TRACE, line, said)


def _evidence(run: Run) -> Iterator[Problem]:
    for path, item in {item.path: item for item in run.evidence}.items():
        if said := _evidence_fault(run, item):
            kind, sentence = said
            yield Problem("evidence_missing" if kind else "evidence_changed", path, None, sentence)


def _evidence_fault(run: Run, item: EvidenceItem) -> tuple[bool, str] | None:
    """Return (missing, sentence) for faulty evidence, None for good."""
    try:
        digest, size_bytes = _hash_of(run.path, item.path)
    except FileNotFoundError:
        return True, f"it is listed in {EVIDENCE_MANIFEST}, and there is no such file."
    except OSError as error:
        return True, f"it cannot be read: {error.strerror or error}."
    if digest != item.sha256:
        return False, f"its SHA-256 is {digest[:12]}…, and the manifest says {item.sha256[:12]}…."
    if size_bytes != item.size_bytes:
        return False, f"it has {size_bytes:,} bytes, and the manifest says {item.size_bytes:,}."
    if Path(item.path).stem != item.sha256:
        return False, "its name is not its hash."
    return None


def _run_files(run: Run) -> Iterator[Problem]:
    """Check the files that tools' outputs were written to."""
    for line, event in _numbered(run):
        for name, sha256 in _named_files(event, "run_files"):
            try:
                run.read_file(name, sha256)
            except EvidenceChanged as error:
                yield Problem("evidence_changed", name, None, error.message)
            except OSError as error:
                said = f"line {line} of {TRACE} names it, and it cannot be read: {error.strerror or error}."
                yield Problem("evidence_missing", name, None, said)


def _views(folder: Path, run: Run) -> Iterator[Problem]:
    """Check the files of the views that the run names; one that is not there may have been evicted or removed."""
    named = {file: name for _, event in _numbered(run) for name, file in _named_files(event, "view_files")}
    for file, name in named.items():
        try:
            view_files.check(folder, file)
        except FileNotFoundError:
            said = f"the file of view {name!r} is not in {str(folder)!r}: removed, evicted, or on another machine."
            yield Problem("evidence_missing", file, None, said, fault=False)
        except (OSError, BadValue) as error:
            why = error.strerror or error if isinstance(error, OSError) else error
            yield Problem(
                "evidence_changed", file, None, f"the file of view {name!r} is not what was kept: {why}."
            )


def _named_files(event: TraceEvent, key: str) -> list[tuple[str, str]]:
    """Return the files that an event names, with what stands beside each; what is no text is left out."""
    pairs = [*event.metadata.items(), *(event.result or {}).items()]
    found = [files for name, files in pairs if name == key and isinstance(files, dict)]
    return [(name, text) for files in found for name, text in files.items() if isinstance(text, str)]


def _extra(run: Run) -> Iterator[Problem]:
    listed = {item.path for item in run.evidence}
    names = sorted(p.name for p in (run.path / EVIDENCE).iterdir()) if (run.path / EVIDENCE).is_dir() else []
    live = is_being_written(run.path)
    if not live:
        for file in sorted(run.path.glob("*.new")):
            yield Problem("leftover", file.name, None, "its writer died while it wrote it.", fault=False)
    for name in names:
        path = f"{EVIDENCE}/{name}"
        if name.endswith(".new") and not live:
            yield Problem("leftover", path, None, "its writer died while it wrote it.", fault=False)
        elif path not in listed and not live:
            # A file named by its hash is from a writer that died before it could list it.
            own = _is_own_content(run.path, path)
            said = (
                "its writer died before it was listed." if own else f"{EVIDENCE_MANIFEST} does not list it."
            )
            yield Problem("evidence_extra", path, None, said, fault=not own)


def _hash_of(folder: Path, name: str) -> tuple[str, int]:
    """Return the SHA-256 and the size of a file of the folder; raise `OSError`."""
    size_bytes, digest = 0, hashlib.sha256()
    with plain_files.opened(folder, name) as file:
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
    found = {name: {"$schema": _DIALECT, **msgspec.json.schema(kind)} for name, kind in FILES.items()}
    # The codes come from the error classes, which a type annotation cannot name.
    found["trace_event"]["$defs"]["ErrorObject"]["properties"]["error_code"] = {"enum": list(catalogue())}
    for schema in found.values():
        for part in schema["$defs"].values():
            if "description" in part:  # a docstring, which Python before 3.13 keeps indented
                part["description"] = cleandoc(part["description"])
    return found
