"""Facts about a step: its tags, its fault, its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from healkit.contracts.execution import CallRecord, Finished
from healkit.contracts.failure import Failure
from healkit.contracts.vault import VaultEntry


def tags_of(entry: VaultEntry | None) -> list[str]:
    """Return a tool's type, its group and the flags that are set, as an action's tags."""
    if entry is None:
        return []
    flags = sorted(name for name, value in entry.flags.items() if value is True)
    return [entry.type, *([f"group:{entry.group}"] if entry.group else []), *flags]


def fault_of(failure: Failure, calls: Sequence[CallRecord]) -> tuple[str, str]:
    """Return code and exception of what went wrong: of the last call, where the tool let its error through."""
    last = calls[-1] if calls and failure.ename == "ToolCallError" else None
    if last is None or last.success is not False:
        return failure.code, failure.ename
    said = last.error.strip().rpartition("\n")[2]
    return last.error_code or "", said.partition(":")[0]


def evidence_of(finished: Finished, outputs: list[dict[str, Any]], calls: list[CallRecord]) -> list[Any]:
    """Failure, what was printed and displayed, and the calls made, in full."""
    pieces: list[Any] = []
    if finished.failure is not None:
        pieces.append(("failure", msgspec.to_builtins(finished.failure)))
    for name in ("stdout", "stderr"):
        printed = "".join(str(o["text"]) for o in outputs if o.get("name") == name and "text" in o)
        if name == "stdout" and not printed:
            printed = finished.last_output
        pieces += [(name, printed)] if printed else []
    rich = [output for output in outputs if output.get("output_type") != "stream"]
    pieces += [("outputs", rich)] if rich else []
    pieces += [("calls", [_call(record) for record in calls])] if calls else []
    return pieces


def _call(record: CallRecord) -> dict[str, Any]:
    """Return a call without what differs from run to run."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return {
        name: fields[name] for name in fields if name not in {"trace_id", "started_at", "duration_ms", "type"}
    }


def compared(earlier: Finished, finished: Finished) -> dict[str, Any]:
    """Compare both endings: the same failure, or success with the same value, as far as the log has it."""
    expected, found = earlier.fingerprint or earlier.status, finished.fingerprint or finished.status
    same_value = bool(finished.failure) or earlier.result_summary == finished.result_summary
    same = expected == found and same_value
    return {"expected": expected, "found": found, "same": same}
