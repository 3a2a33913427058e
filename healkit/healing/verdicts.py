"""Verdict on a patch, from the checks' results and the code.

The verdicts promise no more than is known. A patch that passes all checks is

- *cured* if an example or an answer says what is right for an input that the broken code got wrong;
- *unproven* if none does, or if the patch is doubted (`Patch.doubt`) and no answer has settled that;
- *silenced* if it only keeps the failure from happening, returns an example's result as a constant, or makes code
  idle: a condition that decides nothing, statements that are never reached.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from healkit import values
from healkit.contracts.encoding import to_jsonable
from healkit.contracts.healing import Attempt, Check, CheckResult, Patch, Verdict, same_value
from healkit.pysource.nodes import Jump

#: Statements that a guard consists of.
_GUARDS = ast.Return | ast.Continue | ast.Break | ast.Pass

#: Doubt about a patch whose comparison with others was cut short, by the budget or by Stop.
UNCOMPARED = "There was no time left to compare it with other patches."
_ORDER: dict[Verdict, int] = {"cured": 0, "unproven": 1, "silenced": 2, "not_cured": 4}
_UNASKED = 3


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
        if copies_answer(code, patch.code, checks) or makes_idle(code, patch.code):
            return "silenced"
        return "unproven" if patch.doubt and not _settled(checks, unpatched) else "cured"
    return "silenced" if patch.guard or adds_guard(code, patch.code) else "unproven"


def _settled(checks: Sequence[Check], unpatched: Sequence[CheckResult]) -> bool:
    """Return True if answers settle a doubt: one that the broken code fails, or two of any kind.

    An answer that the broken code meets as well only says what was right already.
    """
    answers = [
        was.outcome for check, was in zip(checks, unpatched, strict=True) if check.origin == "answered"
    ]
    return len(answers) > 1 or any(outcome != "passed" for outcome in answers)


def place_of(attempt: Attempt) -> int:
    """Return an attempt's place by its verdict, best first; one that changes results unasked comes last of those."""
    if attempt.unasked and attempt.verdict in ("unproven", "silenced"):
        return _UNASKED
    return _ORDER[attempt.verdict]


def doubted(patch: Patch, doubt: str) -> Patch:
    """Return the patch with one more doubt; its advisor's own comes first."""
    return msgspec.structs.replace(patch, doubt=f"{patch.doubt} {doubt}".strip())


def doubt_untried(patch: Patch, checks: Sequence[Check], untried: bool) -> Patch:
    """Return the patch with a doubt where the call that failed was not tried, or with some rows of its frame only."""
    if untried:
        return doubted(patch, "The call that failed was not tried.")
    if sampled := next((check.sampled for check in checks if check.sampled), ""):
        return doubted(patch, f"Tried on {sampled}.")
    return patch


def uncompared(
    attempt: Attempt, code: str, checks: Sequence[Check], unpatched: Sequence[CheckResult]
) -> Attempt:
    """Return a cured attempt as one whose comparison with others was cut short; answers may still settle the doubt."""
    if attempt.verdict != "cured":
        return attempt
    patch = doubted(attempt.patch, UNCOMPARED)
    verdict = verdict_on(patch, code, checks, unpatched, attempt.results)
    return msgspec.structs.replace(attempt, patch=patch, verdict=verdict)


def adds_guard(before: str, after: str) -> bool:
    """Return True if the new code has an exception handler or an early exit more than the old one."""
    trees = _trees(before, after)
    if trees is None:
        return False  # code that did not parse before had no failure to silence
    old, new = trees
    return _handlers(new) > _handlers(old) or _early_exits(new) > _early_exits(old)


def makes_idle(before: str, after: str) -> bool:
    """Return True if only the new code has a condition that decides nothing, or statements that are never reached."""
    trees = _trees(before, after)
    return trees is not None and _idle(trees[1]) > _idle(trees[0])


def _trees(before: str, after: str) -> tuple[ast.Module, ast.Module] | None:
    """Return both as syntax trees; None where one does not parse."""
    try:
        return ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _idle(tree: ast.Module) -> int:
    """Count the conditions with the same on both sides, and the blocks that are left before their end."""
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            count += ast.dump(node.body) == ast.dump(node.orelse)
        if isinstance(node, ast.If) and node.orelse:
            count += [*map(ast.dump, node.body)] == [*map(ast.dump, node.orelse)]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                count += sum(_decides_nothing(*two) for two in itertools.pairwise(block))
    return count


def _decides_nothing(statement: ast.stmt, following: ast.stmt) -> bool:
    """Return True if the following statement is never reached, or does what the `if` before it has just done."""
    if isinstance(statement, Jump):
        return True
    one_way = isinstance(statement, ast.If) and not statement.orelse and isinstance(following, Jump)
    return one_way and [*map(ast.dump, statement.body)] == [ast.dump(following)]  # type: ignore[attr-defined]  # an If


def copies_answer(before: str, after: str, checks: Sequence[Check]) -> bool:
    """Return True if only the new code returns an example's answer as a constant.

    A truth value, -1, 0, 1, None and an empty value may be meant; a number of one digit too, unless a condition
    chooses it. Anything longer is a copied answer.
    """
    trees = _trees(before, after)
    if trees is None:
        return False
    old, new = map(_constant_answers, trees)
    known = [value for value, _ in old]
    answers = [values.as_parts(check.expected) for check in checks if check.binding]
    return any(
        _is_telling(value, chosen) and any(same_value(value, answer) for answer in answers)
        for value, chosen in new
        if not any(same_value(value, other) for other in known)
    )


def _constant_answers(tree: ast.Module) -> list[tuple[Any, bool]]:
    """Return the literals that are returned, as JSON data, and whether a condition chooses them."""
    places: list[tuple[ast.expr, bool]] = []
    chosen = {id(part) for node in ast.walk(tree) if isinstance(node, ast.If) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            places.append((node.value, id(node) in chosen))
        elif isinstance(node, ast.IfExp):
            places += [(node.body, True), (node.orelse, True)]
    found = []
    for place, conditional in places:
        with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            found.append((to_jsonable(ast.literal_eval(_content(place)))[0], conditional))
    return found


def _content(place: ast.expr) -> ast.expr:
    """Return what a frame, a series or an array is made of, where that is written out; else the expression itself."""
    if isinstance(place, ast.Call) and len(place.args) == 1:
        name = ast.unparse(place.func).rpartition(".")[2]
        if name in ("DataFrame", "Series", "array"):
            return place.args[0]
    return place


def _is_telling(value: Any, chosen: bool) -> bool:
    """Return False for a value that much code returns as a constant."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        least = 1 if chosen else 9
        return not -1 <= value <= least or value != int(value)
    return bool(value)


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
