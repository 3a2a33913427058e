"""Holding code against checks, on the road that fits the tool.

A tool that needs nothing but its arguments is tried in the light mode: each check in a fresh restricted process of its
own. One that calls other tools, reads what it was granted or is a SQL statement is tried where all that is there: as a
candidate in a worker, as the patch editor's Try does. Checks keep their order, and share nothing either way.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from healkit.contracts.entries import NO_GRANTS
from healkit.contracts.healing import Check, CheckResult, same_value
from healkit.errors import BudgetSpent, HealkitError
from healkit.healing.advisor import Workbench
from healkit.runtime.execution import Execution
from healkit.runtime.loop import Stop
from healkit.store.entries import VaultEntry

#: How often Stop is looked at.
_TICK_S = 0.05
#: Runs a tool's candidate with a check's arguments on the road; given by whoever owns the executor.
TryCode = Callable[[str, Check], Execution]


class Validator:
    """Runs codes against checks for one tool."""

    def __init__(self, entry: VaultEntry, bench: Workbench, try_code: TryCode, stop: threading.Event) -> None:
        self._bench = bench
        self._stop = stop
        self._try_code = try_code
        #: Whether a light trial is enough for this tool.
        self.light = entry.type == "python" and entry.grants == NO_GRANTS and "mcp" not in entry.code
        #: What the trace calls the road.
        self.mode = "trial" if self.light else "worker"

    def fits(self, check: Check) -> bool:
        """Whether the check can be run at all: source to evaluate needs the light mode."""
        return self.light or not check.call

    def run(self, code: str, checks: Sequence[Check]) -> list[CheckResult]:
        """How each check goes; raises `BudgetSpent`, and a `HealkitError` for code that cannot be run as this tool."""
        if not checks:
            return []
        if self.light:
            return self._bench.run([code], checks)[0]
        return [self._on_the_road(code, check) for check in checks]

    def _on_the_road(self, code: str, check: Check) -> CheckResult:
        if self._bench.left_s <= 0:
            raise BudgetSpent("The healing's time is up.", hint="Give it more: budget_s=….")
        started = time.perf_counter()
        try:
            with _heard(self._stop):
                execution = self._try_code(code, check)
        except HealkitError as error:
            return CheckResult(outcome="raised", failure=str(error.message), error_code=str(error.code))
        return result_of(check, execution, time.perf_counter() - started)


@contextlib.contextmanager
def _heard(stop: threading.Event) -> Iterator[None]:
    """The block whose executions end when `stop` is set."""
    halt, over = Stop(), threading.Event()

    def watch() -> None:
        while not over.is_set():
            if stop.wait(_TICK_S):
                halt.ask()
                return

    threading.Thread(target=watch, name="healkit-heal-stop", daemon=True).start()
    try:
        with halt.heard():
            yield
    finally:
        over.set()


def result_of(check: Check, execution: Execution, duration_s: float) -> CheckResult:
    """An execution as a check's result."""
    failure = execution.failure
    if failure is None:
        right = not check.known or (not check.raises and same_value(check.expected, execution.value))
        return CheckResult(
            outcome="passed" if right else "wrong",
            value=execution.value,
            duration_s=duration_s,
            trace_id=execution.trace_id,
        )
    ended = {"TOOL_TIMEOUT": "timeout", "TOOL_CRASHED": "died", "TOOL_EXITED": "died"}.get(
        failure.code, "raised"
    )
    if check.raises and failure.ename == check.raises:
        ended = "passed"
    return CheckResult(
        outcome=ended,  # type: ignore[arg-type]  # the values above are outcomes
        failure=failure.summary,
        error_code=failure.code,
        duration_s=duration_s,
        trace_id=execution.trace_id,
    )
