"""What a patch is worth, read off how its checks went.

The words are chosen so that none promises too much. A patch that passes everything is *cured* only where somebody's
word says what is right on an input that the broken code got wrong; where nobody's does, it is *unproven*; where all it
does is to keep the failure from happening, it is *silenced*, and so it is where the answer was only copied from an
example. The advisor's own word for it counts only against it: what it doubts is *unproven*, until somebody was asked.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from typing import Any

from healkit.contracts.encoding import to_jsonable
from healkit.contracts.healing import Check, CheckResult, Patch, Verdict, same_value

_GUARDS = ast.Return | ast.Continue | ast.Break | ast.Pass


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
