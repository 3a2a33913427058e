"""Diagnosis: the kind of a mistake, its line, if code helps.

The first step of a healing after the observation. It reads what is on record and runs nothing. The failure catalogue,
`healkit.failures`, knows the sentence and the kind.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from healkit.contracts.entries import VaultEntry
from healkit.contracts.failure import Failure
from healkit.contracts.healing import Check
from healkit.errors import CodeDoesNotParse
from healkit.failures import Kind, explain, kind_of, no_fix
from healkit.pysource import shapes


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """A failure, as far as it is known before anything is tried.

    line: where the innermost frame in the tool's own code was (from 1), None if no line is known. function: the one
    that the line is in. sentence: the failure in one plain sentence. mendable: False if no change of the code
    helps; then `why_not` says why in one sentence.
    """

    kind: Kind
    sentence: str
    line: int | None = None
    function: str = ""
    mendable: bool = True
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
        mendable=not why_not,
        why_not=why_not,
    )


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
        return Diagnosis("wrong_value", "It raises nothing, and returns something other than what is right.")
    why = "Nothing on record says that anything is wrong: no failure, and no example of what is right."
    return Diagnosis("other", "There is no failure on record.", mendable=False, why_not=why)


def _sentence(text: str) -> str:
    """Put a sentence on one line and end it."""
    flat = " ".join(text.split())
    return flat if flat.endswith((".", "!", "?")) else f"{flat}."
