"""Checks run on code, and the verdict on a patch.

A tool that needs only its arguments is checked in the light mode: each check in a fresh restricted process of its own.
A tool that calls other tools, reads granted folders or is a SQL statement is checked as a candidate in a worker, as the
patch editor's Try does. Either way, checks keep their order and share nothing.

The verdicts promise no more than is known. A patch that passes all checks is

- *cured* if an example or an answer says what is right for an input that the broken code got wrong;
- *unproven* if none does, or if the advisor that proposed it doubts it and no person has answered since;
- *silenced* if it only keeps the failure from happening, or returns an example's result as a constant.
"""

from __future__ import annotations

import ast
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from healkit.contracts.encoding import to_jsonable
from healkit.contracts.entries import NO_GRANTS, VaultEntry
from healkit.contracts.healing import Check, CheckResult, Patch, Verdict, same_value
from healkit.errors import BudgetSpent, HealkitError
from healkit.healing.advisor import Workbench
from healkit.runtime.background import Stop
from healkit.runtime.execution import Execution

#: Statements that leave a block.
_GUARDS = ast.Return | ast.Continue | ast.Break | ast.Pass
#: Interval at which Stop is checked.
_TICK_S = 0.05
#: Runs a tool's candidate with a check's arguments on the execution path; given by the owner of the executor.
TryCode = Callable[[str, Check], Execution]


class Validator:
    """Runs codes on the checks of one tool."""

    def __init__(self, entry: VaultEntry, bench: Workbench, try_code: TryCode, stop: threading.Event) -> None:
        self._bench = bench
        self._stop = stop
        self._try_code = try_code
        #: True if a light trial is enough for this tool.
        self.light = entry.type == "python" and entry.grants == NO_GRANTS and "mcp" not in entry.code
        #: Name of the mode in the trace.
        self.mode = "trial" if self.light else "worker"

    def fits(self, check: Check) -> bool:
        """Return True if the check can be run: one with source to evaluate needs the light mode."""
        return self.light or not check.call

    def run(self, code: str, checks: Sequence[Check]) -> list[CheckResult]:
        """Run the checks; raise `BudgetSpent`, and `HealkitError` for code that cannot be run as this tool."""
        if not checks:
            return []
        if self.light:
            return self._bench.run([code], checks)[0]
        return [self._in_worker(code, check) for check in checks]

    def _in_worker(self, code: str, check: Check) -> CheckResult:
        if self._bench.left_s <= 0:
            raise BudgetSpent("The healing's time is up.", hint="Give it more: budget_s=….")
        started = time.perf_counter()
        try:
            with _stopped_by(self._stop):
                execution = self._try_code(code, check)
        except HealkitError as error:
            return CheckResult(outcome="raised", failure=str(error.message), error_code=str(error.code))
        return result_of(check, execution, time.perf_counter() - started)


@contextlib.contextmanager
def _stopped_by(stop: threading.Event) -> Iterator[None]:
    """Stop the executions of a block when `stop` is set."""
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
    """Convert an execution to a check's result."""
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


def verdict_on(
    patch: Patch,
    code: str,
    checks: Sequence[Check],
    unpatched: Sequence[CheckResult],
    patched: Sequence[CheckResult],
) -> Verdict:
    """Judge a patch of `code` by the checks' results without it (`unpatched`) and with it (`patched`)."""
    if any(result.outcome != "passed" for result in patched):
        return "not_cured"
    if any(check.binding and was.outcome != "passed" for check, was in zip(checks, unpatched, strict=True)):
        if copies_answer(code, patch.code, checks):
            return "silenced"
        return (
            "unproven" if patch.doubt and not any(check.origin == "answered" for check in checks) else "cured"
        )
    return "silenced" if patch.guard or adds_guard(code, patch.code) else "unproven"


def adds_guard(before: str, after: str) -> bool:
    """Return True if the new code has an exception handler or an early exit more than the old one."""
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError):
        return False  # code that did not parse before had no failure to silence
    return _handlers(new) > _handlers(old) or _early_exits(new) > _early_exits(old)


def copies_answer(before: str, after: str, checks: Sequence[Check]) -> bool:
    """Return True if only the new code returns an example's answer as a constant.

    A truth value, a number of one digit, None and an empty value may be meant; anything longer is a copied answer.
    """
    try:
        old, new = _constant_answers(ast.parse(before)), _constant_answers(ast.parse(after))
    except (SyntaxError, ValueError, RecursionError):
        return False
    told = [check.expected for check in checks if check.binding and _is_telling(check.expected)]
    added = [value for value in new if not any(same_value(value, known) for known in old)]
    return any(same_value(value, expected) for value in added for expected in told)


def _constant_answers(tree: ast.Module) -> list[Any]:
    """Return the literals that are returned, or chosen by a condition, as JSON data."""
    places = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None
    ]
    places += [
        branch
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp)
        for branch in (node.body, node.orelse)
    ]
    found = []
    for place in places:
        with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            found.append(to_jsonable(ast.literal_eval(place))[0])
    return found


def _is_telling(value: Any) -> bool:
    """Return False for a value that much code returns as a constant."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return not -10 < value < 10
    return bool(value)


def why_not(checks: Sequence[Check], results: Sequence[CheckResult]) -> str:
    """Say which check a patch fails first; empty if it passes all."""
    for check, result in zip(checks, results, strict=True):
        if result.outcome != "passed":
            return f"{describe(check)}: {_outcome_text(check, result)}"
    return ""


def describe(check: Check) -> str:
    """Describe the check in a few words: its input and its origin."""
    given = check.call or ", ".join(f"{name}={_short(value)}" for name, value in check.arguments.items())
    words = {
        "declared": "the example",
        "answered": "your answer for",
        "passing": "the recorded run",
        "failing": "the failing input",
    }
    return f"{words[check.origin]} ({_short_text(given, 120)})"


def _outcome_text(check: Check, result: CheckResult) -> str:
    if result.outcome == "wrong":
        wanted = check.raises or _short(check.expected)
        return f"gives {result.failure or _short(result.value)} where {wanted} is right"
    said = {"timeout": "does not end in time", "died": "takes its process with it", "not_run": "was not run"}
    return said.get(result.outcome) or f"raises {_short_text(result.failure, 200)}"


def _short(value: object) -> str:
    return _short_text(repr(value), 60)


def _short_text(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _handlers(tree: ast.Module) -> int:
    suppressing = ("suppress", "contextlib.suppress")
    return sum(
        isinstance(node, ast.ExceptHandler)
        or (isinstance(node, ast.Call) and ast.unparse(node.func) in suppressing)
        for node in ast.walk(tree)
    )


def _early_exits(tree: ast.Module) -> int:
    """Count the `if`s that only leave: return a constant, continue, break or pass."""
    return sum(
        isinstance(node, ast.If)
        and len(node.body) == 1
        and isinstance(node.body[0], _GUARDS)
        and _fixed(node.body[0])
        for node in ast.walk(tree)
    )


def _fixed(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Return):
        return True
    value = statement.value
    empty = (
        isinstance(value, ast.List | ast.Dict | ast.Tuple | ast.Set)
        and not list(ast.iter_child_nodes(value))[:-1]
    )
    return value is None or isinstance(value, ast.Constant) or empty
