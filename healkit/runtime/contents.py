"""What is put on record of a tool whose contents are kept off it.

A tool with the flag `log=False` still has a row, a trace and calls for every execution: that it ran, when, for whom,
which revision, for how long and how it ended. Nothing of what it was given, what it said and what it returned is in
them, nor in a run folder, a spool or a journal: the records are emptied before they go anywhere. Where its failure
arose stays, as function names and lines of its own code, without the exception's message.

The caller gets everything, as always. What another tool was asked by it is that tool's to keep or not; what another
tool asked of it is kept off that one's record too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from healkit.contracts.failure import format_frames
from healkit.contracts.fingerprint import fingerprint
from healkit.contracts.records import CallRecord, DecisionRecord, Finished, Started, Step

NOT_KEPT = "(not kept)"
#: The same where a JSON object or a JSON value is expected.
NOT_KEPT_OBJECT, NOT_KEPT_VALUE = f'{{"…":"{NOT_KEPT}"}}', f'"{NOT_KEPT}"'

AnyRecord = TypeVar("AnyRecord", bound=Started | CallRecord | DecisionRecord | Finished)


def without_contents(record: AnyRecord) -> AnyRecord:
    """The record without contents."""
    replace = msgspec.structs.replace
    if isinstance(record, Started):
        return replace(record, arguments=NOT_KEPT_OBJECT)
    if isinstance(record, DecisionRecord):
        return replace(record, outcome=NOT_KEPT, condition="")
    if isinstance(record, CallRecord):
        said = NOT_KEPT_VALUE if record.success else ""
        return replace(
            record, arguments=NOT_KEPT_OBJECT, result_summary=said, error=NOT_KEPT if record.error else ""
        )
    if record.failure is None:
        return replace(record, result_summary=NOT_KEPT_VALUE, last_output="")
    last_line = f"{record.failure.ename}: {NOT_KEPT}"
    failure = replace(
        record.failure, evalue=NOT_KEPT, traceback=format_frames(record.failure.frames, last_line), hint=""
    )
    return replace(record, failure=failure, fingerprint=fingerprint(failure), last_output="")


def recording_without_contents(
    sink: Callable[[Step], None], own: bool, keeps_off: Callable[[str], bool]
) -> Callable[[Step], None]:
    """A sink for an execution's calls and decisions that empties what is not to be kept, and hands on.

    own: whether the execution's own tool is kept off the record. keeps_off: whether the vault's tool of that name is.
    """

    def record(step: Step) -> None:
        if own or (isinstance(step, CallRecord) and step.server == "vault" and keeps_off(step.tool)):
            step = without_contents(step)
        sink(step)

    return record
