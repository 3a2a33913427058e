"""What the outcome of an execution means for a check."""

from __future__ import annotations

from typing import Any

from healkit.contracts.failure import Failure
from healkit.contracts.healing import Check, CheckOutcome, CheckResult, same_value

_TIME = {"TOOL_TIMEOUT", "TOOL_CPU_LIMIT"}
_DEATH = {
    "TOOL_CRASHED", "TOOL_EXITED", "TOOL_KILLED", "TOOL_PROTOCOL", "TOOL_DISK_LIMIT", "WORKER_LOST",
}  # fmt: skip


def judged(
    check: Check, value: Any, failure: Failure | None, duration_s: float = 0.0, trace_id: str = ""
) -> CheckResult:
    """The check's result, from the value that came back or the failure that did instead."""
    outcome: CheckOutcome
    if failure is None:
        wrong = check.raises or (check.known and not same_value(check.expected, value))
        outcome = "wrong" if wrong else "passed"
        return CheckResult(outcome=outcome, value=value, duration_s=duration_s, trace_id=trace_id)
    if failure.code in _TIME:
        outcome = "timeout"
    elif failure.code in _DEATH:
        outcome = "died"
    elif check.raises and check.raises in {failure.ename, failure.ename.rpartition(".")[2]}:
        outcome = "passed"
    else:
        outcome = "raised"
    return CheckResult(
        outcome=outcome,
        failure=f"{failure.ename}: {failure.evalue}" if failure.evalue else failure.ename,
        error_code=failure.code,
        duration_s=duration_s,
        trace_id=trace_id,
    )
