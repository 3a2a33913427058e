"""Diagnosis: the kind of a mistake, its line, if code helps.

The first step of a healing after the observation. It reads what is on record, and what the loop found; it runs
nothing. The failure catalogue, `healkit.failures`, knows the sentence and the kind.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from healkit.contracts.failure import Failure
from healkit.contracts.healing import Check, CheckResult
from healkit.contracts.vault import VaultEntry
from healkit.errors import CodeDoesNotParse
from healkit.failures import Kind, explain, kind_of, no_fix
from healkit.healing.advisor import Case
from healkit.pysource import shapes
from healkit.runtime.execution import execution_of
from healkit.store.log_reader import Log


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """A failure, as far as it is known before anything is tried.

    line: where the innermost frame in the tool's own code was (from 1), None if no line is known. function: the one
    that the line is in. sentence: the failure in one plain sentence. fixable: False if no change of the code
    helps; then `why_not` says why in one sentence.
    """

    kind: Kind
    sentence: str
    line: int | None = None
    function: str = ""
    fixable: bool = True
    why_not: str = ""


def diagnose(entry: VaultEntry, failure: Failure | None, checks: Sequence[Check] = ()) -> Diagnosis:
    """Diagnose an entry's newest failure or, without one, its wrong values; never raises."""
    if entry.type == "python" and (broken := _unreadable(entry)) is not None:
        return broken
    if failure is None:
        return _wrong_value(checks)
    frame = failure.tool_frame
    why_not = no_fix(failure)
    return Diagnosis(
        kind_of(failure),
        _sentence(explain(failure).what),
        frame.lineno if frame else None,
        frame.name.strip("<>") if frame else "",
        fixable=not why_not,
        why_not=why_not,
    )


def diagnosed_by_examples(
    case: Case, diagnosis: Diagnosis, base: Sequence[CheckResult], log: Log
) -> tuple[Case, Diagnosis]:
    """Take the first failure of an example as the case's, and diagnose it; without one, a value is wrong.

    base: the examples' results with the code as it is; empty if they were not run.
    """
    if not base:
        return case, dataclasses.replace(diagnosis, sentence="What its examples give is not known.")
    for result in base:
        if result.failure and result.outcome not in ("passed", "wrong"):
            failure = _failure_of(case, result, log)
            return dataclasses.replace(case, failure=failure), diagnose(case.entry, failure, case.checks)
    return case, diagnosis


def _failure_of(case: Case, result: CheckResult, log: Log) -> Failure:
    """Return the failure of a check as it is on record; for a tool that is kept off the record, its one line."""
    row = log.by_trace(result.trace_id) if result.trace_id and case.entry.logged else None
    if row is not None and (failure := execution_of(row, []).failure) is not None:
        return failure
    ename, _, evalue = result.failure.partition(": ")
    return Failure(result.error_code or "TOOL_EXCEPTION", ename, evalue, result.failure)


def _unreadable(entry: VaultEntry) -> Diagnosis | None:
    """Diagnose code that Python cannot read, whatever the record says."""
    try:
        shapes.parse(entry.code, entry.ref.filename)
    except CodeDoesNotParse as error:
        where = f"line {error.lineno}" if error.lineno else "the code"
        message = error.message.partition("\n")[0].partition(": ")[2]
        return Diagnosis("syntax", f"Python cannot read {where}: {message.rstrip('.')}.", error.lineno)
    return None


def _wrong_value(checks: Sequence[Check]) -> Diagnosis:
    if any(check.known for check in checks):
        return Diagnosis("wrong_value", "No exception, but the result is wrong.")
    why = "Nothing on record says that anything is wrong: no failure, and no example of what is right."
    return Diagnosis("other", "There is no failure on record.", fixable=False, why_not=why)


def _sentence(text: str) -> str:
    """Put a sentence on one line and end it."""
    flat = " ".join(text.split())
    return flat if flat.endswith((".", "!", "?")) else f"{flat}."
