"""What of a record is payload, cleaned before it is kept.

A payload is what a tool was given, said or returned; ids, names, hashes and codes are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from healkit.contracts.failure import Failure
from healkit.contracts.records import CallRecord, DecisionRecord, Finished, Record, Started, summarize
from healkit.tracing.redaction import Cleaner, whole_words

#: Longer payloads are looked at up to here only, in characters: a trace keeps 10 KB of each.
WHOLE_MAX_CHARS, HEAD_CHARS = 32_000, 12_000
#: No limit of size: a record of the log is cleaned, not cut.
UNLIMITED = 1 << 62

#: Any one kind of record; what comes in goes out.
AnyRecord = TypeVar("AnyRecord", bound=Record)

# What `records.summarize` puts in the place of the rest.
_CUT = re.compile(r"… \[TRUNCATED, ([\d,]+) characters\]\Z")

_encode = msgspec.json.Encoder().encode


def payload_of(text: str) -> tuple[Any, int | None]:
    """A record's text as the JSON value it is, or as text where it was cut; and the size it was cut from.

    What was cut somewhere may have been cut in the middle of a secret, and half a secret matches no rule. So the last
    word before the cut goes too.
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
    """The record with its payloads cleaned; its trace, if it has one, has been cleaned already."""

    def text(value: str) -> str:
        return str(cleaner.clean(value, limit_bytes=UNLIMITED).value) if value else value

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
                changes["failure"] = _failure(record.failure, text)
    return msgspec.structs.replace(record, **changes)


def _failure(failure: Failure, text: Callable[[str], str]) -> Failure:
    frames = [msgspec.structs.replace(frame, line=text(frame.line)) for frame in failure.frames]
    changes = {name: text(getattr(failure, name)) for name in ("evalue", "traceback", "hint")}
    names = {name: [text(one) for one in getattr(failure, name)] for name in ("near", "known")}
    return msgspec.structs.replace(failure, frames=frames, **changes, **names)
