"""The kind of a mistake, its line, and whether code helps.

The first step of a healing after the observation. It reads what is on record and runs nothing; what the failure means
in plain words is known to the tables of `healkit.rendering.explaining` already.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from healkit.contracts.failure import Failure
from healkit.contracts.healing import Check
from healkit.errors import TOOL_CODES, CodeDoesNotParse
from healkit.failures import explain
from healkit.pysource import shapes
from healkit.store.entries import VaultEntry

Kind = Literal[
    "syntax", "import", "name", "attribute", "key", "path", "type", "value", "zero", "index", "assertion",
    "wrong_value", "timeout", "memory", "crash", "arguments", "limits", "other",
]  # fmt: skip

_BY_CODE: dict[str, Kind] = {
    "CODE_SYNTAX": "syntax",
    "TOOL_TIMEOUT": "timeout",
    "TOOL_CPU_LIMIT": "timeout",
    "TOOL_OUT_OF_MEMORY": "memory",
    "TOOL_OUTPUT_LIMIT": "limits",
    "TOOL_DISK_LIMIT": "limits",
    "TOOL_RESULT_TOO_LARGE": "limits",
    "TOOL_CRASHED": "crash",
    "TOOL_EXITED": "crash",
    "ARGUMENTS_INVALID": "arguments",
}
_BY_ENAME: dict[str, Kind] = {
    "CodeDoesNotParse": "syntax",
    "SyntaxError": "syntax",
    "IndentationError": "syntax",
    "TabError": "syntax",
    "ImportError": "import",
    "ModuleNotFoundError": "import",
    "NameError": "name",
    "UnboundLocalError": "name",
    "AttributeError": "attribute",
    "KeyError": "key",
    "FileNotFoundError": "path",
    "NotADirectoryError": "path",
    "IsADirectoryError": "path",
    "PermissionError": "path",
    "TypeError": "type",
    "ValueError": "value",
    "JSONDecodeError": "value",
    "UnicodeDecodeError": "value",
    "UnicodeEncodeError": "value",
    "OverflowError": "value",
    "ZeroDivisionError": "zero",
    "IndexError": "index",
    "AssertionError": "assertion",
    "RecursionError": "limits",
    "MemoryError": "memory",
    "TimeoutError": "timeout",
}
#: Endings that say nothing of the code, so that other code would end no other way.
_NOT_THE_CODE = {
    "ARGUMENTS_INVALID": "The arguments do not fit the tool's input schema, and the code was not run.",
    "ISOLATION_UNAVAILABLE": "This machine cannot restrict a worker as asked, and the code was not run.",
    "HOST_DIED": "The process that had started the run died; run the tool again.",
    "WORKER_LOST": "The worker was lost through no fault of the code; run the tool again.",
    "WORKER_ERROR": "The worker failed, not the code; run the tool again.",
    "WORKER_START_FAILED": "No worker could be started; `%healkit doctor`, in a terminal `healkit doctor`, says why.",
    "TOOL_KILLED": "Somebody stopped the run; there is nothing to mend in that.",
    "TOOL_NOT_FOUND": "There is no such tool.",
    "VAULT_TAMPERED": "The stored code was changed outside of healkit; revert to a revision that is whole.",
}


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """What is known of a failure before anything is tried.

    line: of the tool's own code, where its innermost frame was (from 1), None where no line is known. function: whose
    line that is. sentence: the failure in one plain sentence. mendable: False where no change of the code helps; then
    `why_not` says why in one sentence.
    """

    kind: Kind
    sentence: str
    line: int | None = None
    function: str = ""
    mendable: bool = True
    why_not: str = ""


def diagnose(entry: VaultEntry, failure: Failure | None, checks: Sequence[Check] = ()) -> Diagnosis:
    """The diagnosis of an entry's newest failure, or, without one, of its wrong values; never raises."""
    if entry.type == "python" and (broken := _unreadable(entry)) is not None:
        return broken
    if failure is None:
        return _wrong_value(checks)
    kind = _kind(failure)
    frame = failure.tool_frame
    return Diagnosis(
        kind,
        _sentence(explain(failure).what),
        frame.lineno if frame else None,
        frame.name.strip("<>") if frame else "",
        mendable=failure.code not in _NOT_THE_CODE,
        why_not=_NOT_THE_CODE.get(failure.code, ""),
    )


def _kind(failure: Failure) -> Kind:
    if failure.code in _BY_CODE:
        return _BY_CODE[failure.code]
    if failure.code not in TOOL_CODES:
        return "other"
    if failure.evalue.startswith("Column not found"):  # pandas raises it as several types
        return "key"
    return _BY_ENAME.get(failure.ename.rpartition(".")[2], "other")


def _unreadable(entry: VaultEntry) -> Diagnosis | None:
    """The diagnosis of code that Python cannot read, whatever the record says."""
    try:
        shapes.parse(entry.code, entry.ref.filename)
    except CodeDoesNotParse as error:
        where = f"line {error.lineno}" if error.lineno else "the code"
        message = error.message.partition("\n")[0].partition(": ")[2]
        return Diagnosis("syntax", f"Python cannot read {where}: {message.rstrip('.')}.", error.lineno)
    return None


def _wrong_value(checks: Sequence[Check]) -> Diagnosis:
    if any(check.known for check in checks):
        return Diagnosis("wrong_value", "It raises nothing, and returns something other than what is right.")
    why = "Nothing on record says that anything is wrong: no failure, and no example of what is right."
    return Diagnosis("other", "There is no failure on record.", mendable=False, why_not=why)


def _sentence(text: str) -> str:
    """Its first sentence, in one line, ended."""
    flat = " ".join(text.split())
    return flat if flat.endswith((".", "!", "?")) else f"{flat}."
