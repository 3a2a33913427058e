"""Holding code against checks, on the road that fits the tool.

A tool that needs nothing but its arguments is tried in the light mode: each check in a fresh restricted process of its
own. One that calls other tools, reads what it was granted or is a SQL statement is tried where all that is there: as a
candidate in a worker, as the patch editor's Try does. Checks keep their order, and share nothing either way.
"""

from __future__ import annotations

import ast
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from healkit.contracts.encoding import to_jsonable
from healkit.contracts.entries import NO_GRANTS
from healkit.contracts.healing import Check, CheckResult, Patch, Verdict, same_value
from healkit.errors import BudgetSpent, HealkitError
from healkit.healing.advisor import Workbench
from healkit.runtime.background import Stop
from healkit.runtime.execution import Execution
from healkit.store.entries import VaultEntry

#: Statements that leave a block.
_GUARDS = ast.Return | ast.Continue | ast.Break | ast.Pass
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


def verdict_on(
    patch: Patch,
    before: str,
    checks: Sequence[Check],
    base: Sequence[CheckResult],
    results: Sequence[CheckResult],
) -> Verdict:
    """The verdict on a patch of the code `before`, whose checks went as `base` without it and as `results` with it."""
    if any(result.outcome != "passed" for result in results):
        return "not_cured"
    if any(check.binding and was.outcome != "passed" for check, was in zip(checks, base, strict=True)):
        if learnt_by_heart(before, patch.code, checks):
            return "silenced"
        return (
            "unproven" if patch.doubt and not any(check.origin == "answered" for check in checks) else "cured"
        )
    return "silenced" if patch.guard or adds_guard(before, patch.code) else "unproven"


def adds_guard(before: str, after: str) -> bool:
    """Whether the new code has an exception handler or an early way out that the old one had not."""
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError):
        return False  # what did not parse before had no run to be silenced
    return _handlers(new) > _handlers(old) or _ways_out(new) > _ways_out(old)


def learnt_by_heart(before: str, after: str, checks: Sequence[Check]) -> bool:
    """Whether the new code returns what an example says is right, as it stands there, where the old one did not.

    A truth value, a number of one digit, nothing and what is empty may be meant; anything longer is an answer that was
    copied.
    """
    try:
        old, new = _fixed_answers(ast.parse(before)), _fixed_answers(ast.parse(after))
    except (SyntaxError, ValueError, RecursionError):
        return False
    told = [check.expected for check in checks if check.binding and _telling(check.expected)]
    added = [value for value in new if not any(same_value(value, known) for known in old)]
    return any(same_value(value, expected) for value in added for expected in told)


def _fixed_answers(tree: ast.Module) -> list[Any]:
    """The literals that are returned, or chosen by a condition, as JSON has them."""
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


def _telling(value: Any) -> bool:
    """Whether a value is not one that code returns as it stands anyway."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return not -10 < value < 10
    return bool(value)


def why_not(checks: Sequence[Check], results: Sequence[CheckResult]) -> str:
    """The first check that speaks against a patch, in one sentence; empty where none does."""
    for check, result in zip(checks, results, strict=True):
        if result.outcome != "passed":
            return f"{describe(check)}: {_went(check, result)}"
    return ""


def describe(check: Check) -> str:
    """The check in a few words: what it is called with, and where it comes from."""
    given = check.call or ", ".join(f"{name}={_short(value)}" for name, value in check.arguments.items())
    words = {
        "declared": "the example",
        "answered": "your answer for",
        "passing": "the recorded run",
        "failing": "the failing input",
    }
    return f"{words[check.origin]} ({_short_text(given, 120)})"


def _went(check: Check, result: CheckResult) -> str:
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


def _ways_out(tree: ast.Module) -> int:
    """How many `if`s do nothing but leave: return something that is fixed, go on, or pass."""
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
