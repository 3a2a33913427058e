"""Records and traces with their payloads cleaned.

A payload is what a tool was given, printed or returned. Ids, names of the contract, hashes, codes and times are not
payload and stay as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from healkit.contracts.execution import CallRecord, DecisionRecord, Finished, Record, Started, summarize
from healkit.contracts.failure import Failure
from healkit.contracts.traces import ExecutionTrace
from healkit.sanitizer.cleaner import Cleaner, again, of_record
from healkit.sanitizer.secret_names import Secrecy, secrecy_of
from healkit.sanitizer.truncation import whole_words

#: Of a payload longer than the first, only as many characters as the second are read: a trace keeps 10 KB of each.
WHOLE_MAX_CHARS, HEAD_CHARS = 32_000, 12_000
#: No size limit: a record of the log is cleaned, not cut.
UNLIMITED = 1 << 62

#: Any kind of record; the kind that goes in comes out.
AnyRecord = TypeVar("AnyRecord", bound=Record)

# Written by `records.summarize` in place of the rest.
_CUT = re.compile(r"… \[TRUNCATED, ([\d,]+) characters\]\Z")

_encode = msgspec.json.Encoder().encode


def payload_of(text: str) -> tuple[Any, int | None]:
    """Return a record's text as JSON value, or as text where it was cut, and its size before the cut.

    A cut may stand inside a secret, and half a secret matches no rule. So the last word before a cut is dropped.
    """
    text = text if len(text) <= WHOLE_MAX_CHARS else summarize(text, HEAD_CHARS)
    cut = _CUT.search(text)
    if cut is not None:
        head = whole_words(text[: cut.start()])
        return f"{head}… [TRUNCATED] ({cut[1]} characters)", int(cut[1].replace(",", ""))
    try:
        return msgspec.json.decode(text), None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text, None


def cleaned_record(record: AnyRecord, cleaner: Cleaner) -> AnyRecord:
    """Return the record with its payloads cleaned; its trace, if it has one, is clean already."""
    text = partial(_text, cleaner)

    def json(value: str) -> str:
        if _CUT.search(value):
            return text(str(payload_of(value)[0]))
        try:
            decoded = msgspec.json.decode(value)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return text(value)
        return _encode(cleaner.clean(decoded, limit_bytes=UNLIMITED).value).decode()

    changes: dict[str, Any]
    match record:
        case Started():
            changes = {"arguments": json(record.arguments)}
        case CallRecord():
            summary = json(record.result_summary) if record.result_summary else ""
            changes = {"arguments": json(record.arguments), "result_summary": summary}
            changes["error"] = text(record.error)
        case DecisionRecord():
            changes = {name: text(getattr(record, name)) for name in ("node", "outcome", "condition")}
        case Finished():
            changes = {"last_output": text(record.last_output)}
            if record.result_summary is not None:
                changes["result_summary"] = json(record.result_summary)
            if record.failure is not None:
                changes["failure"] = cleaned_failure(record.failure, cleaner)
    return msgspec.structs.replace(record, **changes)


def secret_columns(cleaner: Cleaner, columns: Mapping[str, Sequence[Any]]) -> set[str]:
    """Return the names of the columns, of these with some of their values, that are to be hidden.

    A name that says so is enough, whatever the values look like.
    """
    return {
        name
        for name, some in columns.items()
        if secrecy_of(name) >= Secrecy.TOKEN
        or cleaner.clean({name: list(some)}, limit_bytes=UNLIMITED).hidden
    }


def cleaned_failure(failure: Failure, cleaner: Cleaner) -> Failure:
    """Return the failure with all its texts cleaned; a page shows it like this."""
    cleaner = of_record(cleaner)
    text = partial(_text, cleaner)
    text(failure.traceback)  # the whole stack first: a name there tells what a word of the message is
    frames = [msgspec.structs.replace(frame, line=text(frame.line)) for frame in failure.frames]
    changes = {name: text(getattr(failure, name)) for name in ("evalue", "traceback", "hint")}
    linked = [cleaned_failure(one, cleaner) for one in failure.linked]
    return msgspec.structs.replace(cleaned_facts(failure, cleaner), frames=frames, linked=linked, **changes)


def cleaned_facts(failure: Failure, cleaner: Cleaner) -> Failure:
    """Return the failure with what was read off live objects cleaned: Python's own traceback does not show that."""
    if failure.linked:
        failure = msgspec.structs.replace(
            failure, linked=[cleaned_facts(one, cleaner) for one in failure.linked]
        )
    if not failure.observed:
        return failure
    text = partial(_text, cleaner)
    names = {name: [text(one) for one in getattr(failure, name)] for name in ("near", "known")}
    facts = {name: text(fact) for name, fact in failure.facts.items()}
    return msgspec.structs.replace(failure, **names, facts=facts)


def _text(cleaner: Cleaner, value: str) -> str:
    return str(cleaner.clean(value, limit_bytes=UNLIMITED).value) if value else value


def cleaned_trace(
    trace: ExecutionTrace, cleaner: Cleaner, limit_bytes: int
) -> tuple[ExecutionTrace, dict[str, int]]:
    """Clean a trace that was made elsewhere, whatever was done to it there; return it and what was hidden, by rule.

    The collector's server calls this for what clients send, and an exporter for raw traces. Each payload has
    `limit_bytes` for itself. Cleaning a clean trace changes nothing.
    """
    hidden: Counter[str] = Counter()
    cleaner = of_record(cleaner)

    def clean(value: Any, limit: int = limit_bytes) -> Any:
        found = cleaner.clean(value, limit_bytes=limit)
        hidden.update(found.hidden)
        return found.value

    def text(value: str) -> str:
        return str(clean(value)) if value else value

    # The metadata as a whole first: a key may say what its value is.
    metadata = {key: clean(value) for key, value in clean(trace.metadata, UNLIMITED).items()}
    tasks = [
        msgspec.structs.replace(task, args=clean(task.args), result=clean(task.result))
        for task in trace.task_results
    ]
    decisions = [
        msgspec.structs.replace(each, outcome=text(each.outcome), condition=text(each.condition))
        for each in trace.decisions
    ]
    error = None if trace.error is None else text(trace.error)
    cleaned = msgspec.structs.replace(
        trace, error=error, task_results=tasks, decisions=decisions, metadata=metadata
    )
    return trace_again(cleaned, cleaner), dict(hidden)


def trace_again(trace: ExecutionTrace, cleaner: Cleaner) -> ExecutionTrace:
    """Return a trace whose parts this cleaner has cleaned, without what later parts have taught it."""
    tasks = [
        msgspec.structs.replace(task, args=again(cleaner, task.args), result=again(cleaner, task.result))
        for task in trace.task_results
    ]
    decisions = [
        msgspec.structs.replace(
            each, outcome=again(cleaner, each.outcome), condition=again(cleaner, each.condition)
        )
        for each in trace.decisions
    ]
    error, metadata = again(cleaner, trace.error), again(cleaner, trace.metadata)
    return msgspec.structs.replace(
        trace, error=error, task_results=tasks, decisions=decisions, metadata=metadata
    )
