"""Rows of the audit: made of a step, and read as an entry.

What a step brings is cleaned and bounded here, because no entry is ever changed or removed. Its parameters and metadata
are stored as texts of JSON: what is hashed is what is stored, byte by byte.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, get_args

import msgspec

from healkit.contracts.audit import (
    AuditEntry,
    AuditMetadata,
    AuditStep,
    AuditSummary,
    ExecutionType,
    MentionedEvent,
    MentionedFacts,
    MentionedView,
)
from healkit.contracts.execution import escaped, utc_now
from healkit.errors import AuditEntryInvalid
from healkit.sanitizer.cleaner import Cleaner, Verbatim, clean_bounded
from healkit.store.audit_chain import COLUMNS

#: Limit of what an entry keeps of its parameters and states, in bytes of JSON: no entry is ever removed.
PAYLOAD_MAX_BYTES = 4_096
_DESCRIPTION_MAX_CHARS, _NAME_MAX_CHARS = 1_000, 400
#: Columns of `unique_values` that are kept.
_COLUMNS_MAX = 100

_VERBATIM = Verbatim()
_encode = msgspec.json.Encoder().encode


def columns_of(step: AuditStep, cleaner: Callable[[], Cleaner]) -> dict[str, Any]:
    """Return the columns of a step that do not depend on its place; raise `AuditEntryInvalid`."""
    try:
        checked = msgspec.convert(msgspec.structs.asdict(step), AuditStep)
        params, metadata, said = _cleaned(step, cleaner)
        params_json, metadata_json = _encode({} if params is None else params), _encode(metadata)
        msgspec.json.decode(metadata_json, type=AuditMetadata)
    except (msgspec.ValidationError, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise _invalid(str(error)) from None
    tool_name = escaped(checked.tool_name)[:_NAME_MAX_CHARS]
    described = said or _described(checked.choice_type, tool_name, metadata)
    return {
        "execution_id": checked.execution_id,
        "execution_type": checked.execution_type,
        "timestamp": checked.timestamp or utc_now(),
        "choice_type": checked.choice_type,
        "tool_name": tool_name,
        "tool_params": params_json.decode(),
        "metadata": metadata_json.decode(),
        "description": escaped(described)[:_DESCRIPTION_MAX_CHARS],
        "run_id": None if checked.run_id is None else escaped(checked.run_id)[:_NAME_MAX_CHARS],
        "event_seq": checked.event_seq,
    }


def _cleaned(step: AuditStep, make_cleaner: Callable[[], Cleaner]) -> tuple[Any, AuditMetadata, str]:
    """Return parameters, metadata and description without what must not be kept; each is cut at its limit."""
    known = step.metadata
    counts = dict(itertools.islice((known.unique_values or {}).items(), _COLUMNS_MAX))
    parts = [
        step.tool_params,
        known.intended_state,
        known.actual_state,
        known.error_message,
        step.description,
    ]
    parts.append(list(counts))
    given = [part for part in parts if not _is_empty(part)]
    if not given:
        return parts[0], known, ""
    cleaner = _VERBATIM if step.is_clean else make_cleaner()
    clean_all = cleaner.clean(given, limit_bytes=PAYLOAD_MAX_BYTES) if _is_short(given) else None
    together = clean_all or clean_bounded(cleaner, given, PAYLOAD_MAX_BYTES)
    alone = together.truncated_from is not None or not isinstance(together.value, list)
    clean = iter([_clean_alone(cleaner, part) for part in given] if alone else together.value)
    params, intended, actual, message, said, names = (
        part if _is_empty(part) else next(clean) for part in parts
    )
    metadata = msgspec.structs.replace(
        known,
        unique_values=dict(zip(names, counts.values(), strict=True)) or None,
        error_message=message,
        intended_state=_as_object(intended),
        actual_state=_as_object(actual),
    )
    return params, metadata, said


def _clean_alone(cleaner: Cleaner, part: Any) -> Any:
    if isinstance(part, list):  # names of columns, or parameters that are no object
        share = max(_NAME_MAX_CHARS, PAYLOAD_MAX_BYTES // len(part))
        return [clean_bounded(cleaner, item, share).value for item in part[:_COLUMNS_MAX]]
    return clean_bounded(cleaner, part, PAYLOAD_MAX_BYTES).value


def _is_short(parts: list[Any]) -> bool:
    """Return True for plain data that need not be cut before it is cleaned, as nearly all is."""
    try:
        return len(_encode(parts)) <= PAYLOAD_MAX_BYTES
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return False


def _is_empty(part: Any) -> bool:
    return part is None or (type(part) in {str, dict, list} and not part)


def entry_of(row: Mapping[str, Any]) -> AuditEntry:
    """Return a row, with what its JSON texts hold."""
    fields = {name: row[name] for name in COLUMNS if name not in {"id", "tool_params", "metadata"}}
    return AuditEntry(
        position=row["id"],
        tool_params=msgspec.json.decode(row["tool_params"]),
        metadata=msgspec.json.decode(row["metadata"], type=AuditMetadata),
        **fields,
    )


class CountedEntry(NamedTuple):
    """Part of an entry that a summary counts."""

    execution_id: str
    choice_type: str
    tool_name: str
    metadata: AuditMetadata
    timestamp: datetime


def counted_of(row: Mapping[str, Any]) -> CountedEntry:
    """Return the part of a row that a summary counts."""
    metadata = msgspec.json.decode(row["metadata"], type=AuditMetadata)
    return CountedEntry(row["execution_id"], row["choice_type"], row["tool_name"], metadata, row["timestamp"])


def summed(entries: Iterable[AuditEntry | CountedEntry]) -> AuditSummary:
    """Sum up entries: how many by choice, corrections, failures, duration, tools."""
    seen: set[str] = set()
    choices: Counter[str] = Counter()
    tools: set[str] = set()
    corrections = failed_corrections = failures = 0
    duration_ms = 0.0
    first: datetime | None = None
    last: datetime | None = None
    for entry in entries:
        known, time = entry.metadata, entry.timestamp
        seen.add(entry.execution_id)
        choices[entry.choice_type] += 1
        tools.add(entry.tool_name)
        corrections += known.correction_applied is True
        failed_corrections += known.correction_applied is False
        failures += known.success is False
        duration_ms += known.duration_ms or 0.0
        first, last = min(first or time, time), max(last or time, time)
    return AuditSummary(
        len(seen),
        choices.total(),
        dict(choices.most_common()),
        corrections,
        failed_corrections,
        failures,
        round(duration_ms, 3),
        sorted(tools - {""}),
        first,
        last,
    )


def metadata_of(given: AuditMetadata | Mapping[str, Any] | None) -> AuditMetadata:
    """Return metadata that may be given with its names on the wire; raise `AuditEntryInvalid`."""
    if isinstance(given, AuditMetadata):
        return given
    try:
        return msgspec.convert({} if given is None else dict(given), AuditMetadata)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise _invalid(f"metadata: {error}") from None


class Mentioned:
    """Names of what is outside of the database, from the rows of a walk along the chain.

    run_ids: the runs whose folders are there.
    """

    def __init__(self, run_ids: set[str]) -> None:
        self._runs = run_ids
        self._events: dict[str, dict[int, MentionedEvent]] = {}
        self._files: dict[str, dict[str, tuple[str, int]]] = {}
        self._views: dict[tuple[str, str], MentionedView] = {}

    def take(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Take rows of `COLUMNS`, of which none is wrong."""
        for row in rows:
            run_id, known = row[10], row[8]
            if run_id in self._runs and row[11] is not None:
                event = MentionedEvent(row[0], datetime.fromisoformat(row[4]).replace(tzinfo=UTC))
                self._events.setdefault(run_id, {})[row[11]] = event
            if '"viewFiles"' in known or '"runFiles"' in known:
                self._take_files(row, msgspec.json.decode(known, type=AuditMetadata))

    def facts(self, last: int) -> MentionedFacts:
        """Return what they name; last: the place of the last entry."""
        return MentionedFacts(self._runs, self._events, self._files, list(self._views.values()), last)

    def _take_files(self, row: tuple[Any, ...], known: AuditMetadata) -> None:
        if row[10] in self._runs:
            files = self._files.setdefault(row[10], {})
            for name, sha256 in (known.run_files or {}).items():
                files.setdefault(name, (sha256, row[0]))
        for name, file_name in (known.view_files or {}).items():
            time = datetime.fromisoformat(row[4]).replace(tzinfo=UTC)
            view = MentionedView(name, file_name, row[0], row[1], time)
            self._views.setdefault((name, file_name), view)


def _invalid(said: str) -> AuditEntryInvalid:
    kinds = ", ".join(get_args(ExecutionType))
    return AuditEntryInvalid(
        f"This is no audit entry: {said}.", hint=f"Nothing was appended. An execution is one of {kinds}."
    )


def _as_object(cleaned: Any) -> dict[str, Any] | None:
    """Return a cleaned object; one that was too long is text by now, and kept under one name."""
    return cleaned if cleaned is None or isinstance(cleaned, dict) else {"…": cleaned}


def _described(choice_type: str, tool_name: str, known: AuditMetadata) -> str:
    """Make a sentence of a step's fields."""
    with_tool = f" with {tool_name}" if tool_name else ""
    ended = {None: "", True: ": done", False: ": failed"}[known.success]
    facts = [known.error_message] if known.error_message else []
    facts += [] if known.row_count is None else [f"{known.row_count:,} rows"]
    facts += [] if known.column_count is None else [f"{known.column_count:,} columns"]
    facts += [] if known.duration_ms is None else [f"{known.duration_ms:,.1f} ms"]
    in_brackets = f" ({', '.join(facts)})" if facts else ""
    return f"{choice_type.replace('_', ' ')}{with_tool}{ended}{in_brackets}."
