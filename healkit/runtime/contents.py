"""Contents of records, taken out where they are not kept.

A tool with the flag `log=False` still has a row, a trace and calls for every execution: that it ran, when, for whom,
which revision, for how long and how it ended. What it was given, what it said and what it returned is in none of them,
nor in a run folder, a spool or a journal. The place of a failure stays, as function names and lines of the tool's own
code, without the exception's message.

The caller gets everything, as always. What such a tool asked of another is that one's to keep or not; what another tool
asked of it is kept off that one's record too. `runtime.recorder.Recording` decides.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from healkit.contracts.execution import (
    NOT_KEPT,
    NOT_KEPT_OBJECT,
    NOT_KEPT_VALUE,
    CallRecord,
    DecisionRecord,
    Finished,
    Started,
)
from healkit.contracts.failure import fingerprint, format_frames

AnyRecord = TypeVar("AnyRecord", bound=Started | CallRecord | DecisionRecord | Finished)


def without_contents(record: AnyRecord) -> AnyRecord:
    """Return the record without contents."""
    replace = msgspec.structs.replace
    if isinstance(record, Started):
        return replace(record, arguments=NOT_KEPT_OBJECT)
    if isinstance(record, DecisionRecord):
        return replace(record, outcome=NOT_KEPT, condition="")
    if isinstance(record, CallRecord):
        said = NOT_KEPT_VALUE if record.success else ""
        error = NOT_KEPT if record.error else ""
        return replace(record, arguments=NOT_KEPT_OBJECT, result_summary=said, error=error)
    if record.failure is None:
        return replace(record, result_summary=NOT_KEPT_VALUE, last_output="")
    traceback = format_frames(record.failure.frames, f"{record.failure.ename}: {NOT_KEPT}")
    failure = replace(
        record.failure, evalue=NOT_KEPT, traceback=traceback, hint="", linked=[], near=[], known=[], facts={}
    )
    mark = None if record.fingerprint is None else fingerprint(failure)
    return replace(record, failure=failure, result_summary=failure.summary, fingerprint=mark, last_output="")
