"""Verdict on a patch, from the checks' results and the code.

The verdicts promise no more than is known. A patch that passes all checks is

- *cured* if an example or an answer says what is right for an input that the broken code got wrong;
- *unproven* if there is no such example, or if the patch is doubted (`Patch.doubt`) and no answer has settled that;
- *silenced* if it only prevents the failure, or returns an example's result as a constant. It is also silenced if it
  returns any constant from its own handler or guard and only one example asks for that. And it is silenced if it makes
  code idle: a condition that decides nothing, statements that are never reached.

Some doubts come from results. Checks compare numbers by value and lists with tuples. So a patch is doubted if it passes
with another type than the tool returned, or than the example has. If an exception was in an argument, a patch that only
removes the argument is doubted. If no example says what a failing input should give, a patch that changes another
result may be right. But there is no evidence for it, so it comes after patches that keep the other results.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from healkit.core.contracts.patches import Check, CheckResult, difference, same_value
from healkit.core.contracts.vault import VaultEntry, unified_diff
from healkit.core.crossing import values
from healkit.core.pysource.nodes import Function, Jump
from healkit.core.pysource.shapes import read_shape
from healkit.core.wire.encoding import to_jsonable
from healkit.errors import HealkitError
from healkit.parts.explain.edit_kinds import kind_of
from healkit.parts.heal.advisor import Case, Workbench
from healkit.parts.heal.checks import article, why_not
from healkit.parts.heal.inputs import accepted, edges, known_inputs, one_change_away, variants
from healkit.parts.heal.reach import added_reach, told_reach
from healkit.parts.heal.records import Attempt, Patch, Verdict
from healkit.parts.trials.table_changes import Change, Seen

#: Names that an exception's message quotes.
_QUOTED = re.compile(r"""['"`](\w+)['"`]""")
#: Statements that a guard consists of.
_GUARDS = ast.Return | ast.Continue | ast.Break | ast.Pass

#: Doubt about a patch whose comparison with others was cut short, by the budget or by Stop.
UNCOMPARED = "There was no time left to compare it with other patches."
#: Doubt about a model's patch of a tool that is run in workers only, such as a SQL statement.
UNTRIED = "It ran only on its checks: this tool cannot be tried on other inputs."
_ORDER: dict[Verdict, int] = {"cured": 0, "unproven": 1, "undecided": 2, "silenced": 3, "not_cured": 5}
_UNASKED = 4
#: How many other inputs are tried for changes that no check asks for, and the time limit of each in seconds.
_PROBES_MAX, _EDGES_MAX, _PROBE_S = 32, 6, 0.1


# A verdict is given when a patch was tried; what is seen later may only change it in the order of these functions.


def judged_attempt(case: Case, patch: Patch, results: list[CheckResult], *, why: str = "") -> Attempt:
    """Return the attempt with a patch: its verdict by the checks' results, and its doubts.

    results: Of the case's checks, in their order.
    why: Why the patch cannot run as this tool at all; then there are no results.
    """
    patch = msgspec.structs.replace(patch, kind=kind_of(case.entry.code, patch.code, patch.kind))
    results = (
        [_as_seen(was, now) for was, now in zip(case.base, results, strict=False)] if case.base else results
    )
    why = why or why_not(case.checks, results, discreet_about=patch.code if case.discreet else None)
    verdict: Verdict = "undecided" if _is_undecided(results) else "not_cured"
    lost = ""
    if not why:
        rows = list(zip(case.checks, case.base, results, strict=True))
        doubt = (
            _displaced(rows)
            or _change_of_type(case.entry, rows)
            or _new_none(case.entry.code, patch.code, case.checks)
            or _removed_argument(case.entry.code, patch.code, rows)
            or _lossy(case.entry.code, patch.code, rows)
        )
        patch, lost = _doubted(patch, doubt), _lost(rows, discreet=case.discreet)
        patch = msgspec.structs.replace(patch, doubt=f"{lost} {patch.doubt}".strip())
        verdict = _verdict(case, patch, results)
        if verdict == "unproven":
            patch = _doubted(patch, _untried(case))
    reach = added_reach(case.entry.code, patch.code) if case.entry.type == "python" else ()
    return Attempt(
        number=len(case.attempts) + 1,
        patch=patch,
        diff=told_reach(reach) + unified_diff(case.entry.code, patch.code, case.entry.label, "patch"),
        verdict=verdict,
        why=why,
        passed=sum(result.outcome == "passed" for result in results),
        total=len(case.checks),
        results=results,
        reach=list(reach),
        lost=lost,
    )


def with_changes_doubted(case: Case, bench: Workbench) -> tuple[Attempt, ...]:
    """Return the attempts, with a doubt on those that change other results, or break the annotation, unasked.

    If a check says what is right for a failing input, nothing is unasked. Raises `BudgetSpent`.
    """
    plausible = [attempt for attempt in case.attempts if attempt.plausible]
    if is_provable(case) or not plausible:
        return case.attempts
    fitting = returned_types(case.entry.code, case.entry.tool_name)
    inputs = variants(
        known_inputs(case.entry, case.checks), lambda given: accepted(case.entry, given), _PROBES_MAX
    )
    probes = [Check(origin="passing", arguments=arguments) for arguments in inputs]
    changed = dict(_changed_inputs(case, plausible, bench, probes))
    return tuple(
        attempt
        if not attempt.plausible
        else _with_change_doubted(attempt, case.entry, changed.get(attempt.number), fitting)
        for attempt in case.attempts
    )


def doubt_by_other_inputs(case: Case, attempt: Attempt, bench: Workbench) -> str:
    """Return a doubt about a cured patch that changes a result, if the tool only ever raised; empty for any other.

    Raises `BudgetSpent`.
    """
    outcomes = {was.outcome for was in case.base}
    if "passed" not in outcomes or not outcomes <= {"passed", "raised", "died"}:
        return ""
    near = [check.arguments for check in edges(case.checks, _EDGES_MAX) if not check.call]
    neighbours = one_change_away(known_inputs(case.entry, case.checks))
    allowed = (
        arguments for arguments in itertools.chain(near, neighbours) if accepted(case.entry, arguments)
    )
    probes = [
        Check(origin="passing", arguments=arguments) for arguments in itertools.islice(allowed, _PROBES_MAX)
    ]
    change = next(_changed_inputs(case, [attempt], bench, probes), None)
    return "" if change is None else _change(case.entry, change[1])


def disputed(attempt: Attempt, call: str) -> Attempt:
    """Return a cured attempt as unproven: another patch disagrees on that call, and no answer says what is right."""
    if attempt.verdict != "cured":
        return attempt
    doubt = f"Another patch also passes, but gives another result for {call}."
    patch = msgspec.structs.replace(attempt.patch, doubt=doubt)
    return msgspec.structs.replace(attempt, verdict="unproven", patch=patch)


def rejudged(case: Case, attempt: Attempt, result: CheckResult) -> Attempt:
    """Return a plausible attempt judged by one more check, the case's last, which an answer has added."""
    results = [*attempt.results, _as_seen(case.base[-1], result)]
    return msgspec.structs.replace(
        attempt,
        results=results,
        why=why_not(case.checks, results, discreet_about=attempt.patch.code if case.discreet else None),
        verdict=_verdict(case, attempt.patch, results),
        passed=sum(result.outcome == "passed" for result in results),
        total=len(results),
    )


def uncompared(case: Case, attempt: Attempt) -> Attempt:
    """Return a cured attempt as one whose comparison with others was cut short."""
    return doubted(case, attempt, UNCOMPARED)


def doubted(case: Case, attempt: Attempt, doubt: str) -> Attempt:
    """Return a cured attempt with a doubt, if there is one; answers may still settle it."""
    if attempt.verdict != "cured" or not doubt:
        return attempt
    patch = _doubted(attempt.patch, doubt)
    return msgspec.structs.replace(attempt, patch=patch, verdict=_verdict(case, patch, attempt.results))


def refuted(attempt: Attempt, problem: str) -> Attempt:
    """Return an attempt that passed its checks and then failed on the execution path."""
    return msgspec.structs.replace(attempt, verdict="not_cured", why=f"it fails when it runs: {problem}")


def only_hides(case: Case, code: str) -> bool:
    """Return True for a patch that gives an example's answer as a constant, or makes code idle."""
    before = case.entry.code
    return (
        _copies_answer(before, code, case.checks)
        or _makes_idle(before, code)
        or bool(case.base and _makes_up_answer(before, code, case))
    )


def is_provable(case: Case) -> bool:
    """Return True if a check says what is right for an input that the code as it is gets wrong."""
    return any(
        check.binding and was.outcome != "passed" for check, was in zip(case.checks, case.base, strict=True)
    )


def place_of(attempt: Attempt) -> float:
    """Return an attempt's place, best first by its verdict; attempts that change a result unasked come last."""
    if attempt.unasked and attempt.verdict in ("unproven", "silenced"):
        return _UNASKED
    return _ORDER[attempt.verdict] + 0.5 * bool(attempt.lost)


def _verdict(case: Case, patch: Patch, results: Sequence[CheckResult]) -> Verdict:
    """Decide by the checks' results with the patch and, in `case.base`, without it."""
    code = case.entry.code
    if any(result.outcome != "passed" for result in results):
        return "undecided" if _is_undecided(results) else "not_cured"
    if is_provable(case):
        if only_hides(case, patch.code):
            return "silenced"
        return "unproven" if patch.doubt and not _is_settled(case) else "cured"
    loses = patch.kind in ("invents", "discards")
    return "silenced" if patch.guard or loses or _adds_guard(code, patch.code) else "unproven"


def _is_undecided(results: Sequence[CheckResult]) -> bool:
    """Return True if the only problem of the patch is an unrecorded call of some check."""
    outcomes = {result.outcome for result in results}
    return "not_on_record" in outcomes and outcomes <= {"passed", "not_on_record"}


def _as_seen(was: CheckResult, now: CheckResult) -> CheckResult:
    """Return a check's result: a failure does not count if the answers belonged to other arguments.

    was: The result of the unpatched code, which may need such answers itself.
    """
    if now.outcome not in ("wrong", "raised") or now.displaced <= was.displaced:
        return now
    message = f"NotOnRecord: {_other_arguments(now.displaced - was.displaced)}"
    return msgspec.structs.replace(now, outcome="not_on_record", failure=message)


def _other_arguments(calls: int) -> str:
    some = "a call" if calls == 1 else f"{calls} calls"
    return f"it makes {some} with other arguments than those on record, and got the recorded answers"


def _is_settled(case: Case) -> bool:
    """Return True if answers settle a doubt: one that the broken code fails, or two of any kind.

    An answer that the broken code also meets only says what was already right.
    """
    answers = [
        was.outcome for check, was in zip(case.checks, case.base, strict=True) if check.origin == "answered"
    ]
    return len(answers) > 1 or any(outcome != "passed" for outcome in answers)


def _doubted(patch: Patch, doubt: str) -> Patch:
    """Return the patch with one more doubt, if there is one; its advisor's own comes first."""
    return msgspec.structs.replace(patch, doubt=f"{patch.doubt} {doubt}".strip()) if doubt else patch


def _untried(case: Case) -> str:
    """Say that the failing call was not tried, or only with some rows of its frame; empty if it was."""
    if case.untried:
        return "The failing call was not tried."
    sampled = next((check.sampled for check in case.checks if check.sampled), "")
    return f"Tried on {sampled}." if sampled else ""


# What the code tells: guards, idle parts, copied answers.


def _adds_guard(before: str, after: str) -> bool:
    """Return True if the new code has more exception handlers or early exits than the old one."""
    trees = _trees(before, after)
    if trees is None:
        return False  # code that did not parse before had no failure to silence
    old, new = trees
    return _handlers(new) > _handlers(old) or _early_exits(new) > _early_exits(old)


def _makes_idle(before: str, after: str) -> bool:
    """Return True if only the new code has a condition that decides nothing, or statements that are never reached."""
    trees = _trees(before, after)
    return trees is not None and _idle(trees[1]) > _idle(trees[0])


def _trees(before: str, after: str) -> tuple[ast.Module, ast.Module] | None:
    """Return both as syntax trees; None if one does not parse."""
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
    """Return True if the following statement is never reached, or repeats the `if` before it."""
    if isinstance(statement, Jump):
        return True
    one_way = isinstance(statement, ast.If) and not statement.orelse and isinstance(following, Jump)
    return one_way and [*map(ast.dump, statement.body)] == [ast.dump(following)]  # type: ignore[attr-defined]  # an If


def _copies_answer(before: str, after: str, checks: Sequence[Check]) -> bool:
    """Return True if only the new code returns an example's answer as a constant.

    A truth value, -1, 0, 1, None and an empty value may be intended; a number of one digit too, unless a condition
    chooses it. Anything longer is a copied answer.
    """
    trees = _trees(before, after)
    if trees is None:
        return False
    old, new = map(_constant_answers, trees)
    old_values = [value for value, _ in old]
    answers = [values.as_parts(check.expected) for check in checks if check.binding]
    return any(
        _is_telling(value, chosen) and any(same_value(value, answer) for answer in answers)
        for value, chosen in new
        if not any(same_value(value, old_value) for old_value in old_values)
    )


def _constant_answers(tree: ast.Module) -> list[tuple[Any, bool]]:
    """Return the returned literals, as JSON data, and whether a condition chooses them."""
    places: list[tuple[ast.expr, bool]] = []
    chosen = {id(part) for node in ast.walk(tree) if isinstance(node, ast.If) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            places.append((node.value, id(node) in chosen))
        elif isinstance(node, ast.IfExp):
            places += [(node.body, True), (node.orelse, True)]
    answers = []
    for place, conditional in places:
        with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            answers.append((to_jsonable(ast.literal_eval(_content(place)))[0], conditional))
    return answers


def _makes_up_answer(before: str, after: str, case: Case) -> bool:
    """Return True if only the new code has a handler or a guard that gives an example's answer as a constant.

    Two examples that raised and have that answer ask for it. A single one asks for a guard in two special cases. Its
    input is at an edge (empty, zero, negative, one item, two equal arguments), or the guard asks whether something
    exists at all. Elsewhere, the constant hides the failing step.
    """
    trees = _trees(before, after)
    if trees is None:
        return False
    raised = [
        check
        for check, was in zip(case.checks, case.base, strict=True)
        if check.binding and not check.raises and was.outcome in ("raised", "timeout", "died")
    ]
    for handled, find_answers in ((True, _handled_answers), (False, _guarded_answers)):
        old, new = map(find_answers, trees)
        for value in new:
            if any(same_value(value, old_value) for old_value in old):
                continue
            asking = [check for check in raised if same_value(values.as_parts(check.expected), value)]
            if len(asking) == 1 and (handled or not (asking[0].call or _is_edge(asking[0].arguments))):
                return True
    return False


def _handled_answers(tree: ast.Module) -> list[Any]:
    """Return the constants that exception handlers return or assign, as JSON data."""
    places = [
        part.value
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        for part in ast.walk(node)
        if isinstance(part, ast.Return | ast.Assign | ast.AnnAssign)
    ]
    return _literals(places)


def _guarded_answers(tree: ast.Module) -> list[Any]:
    """Return the constants that an `if` only returns, or that a conditional expression gives, as JSON data.

    Those for a missing value are left out: `if match is None`, `if not rows`.
    """
    places: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Return):
            places += [] if _says_nothing_is_there(node.test) else [node.body[0].value]
        elif isinstance(node, ast.IfExp):
            places += [] if _says_nothing_is_there(node.test) else [node.body]
            absent = _says_nothing_is_there(ast.UnaryOp(ast.Not(), node.test))
            places += [] if absent else [node.orelse]
    return _literals(places)


def _says_nothing_is_there(test: ast.expr) -> bool:
    match test:
        case ast.UnaryOp(ast.Not(), ast.Compare(_, [ast.IsNot() | ast.NotEq()], [right])):
            return _is_empty(right)
        case ast.UnaryOp(ast.Not(), ast.Compare() | ast.BoolOp() | ast.UnaryOp()):
            return False
        case ast.UnaryOp(ast.Not()):
            return True
        case ast.Compare(_, [ast.Is() | ast.Eq()], [right]):
            return _is_empty(right)
    return False


def _is_empty(node: ast.expr) -> bool:
    constant = isinstance(node, ast.Constant) and not node.value
    return constant or (isinstance(node, ast.List | ast.Tuple) and not node.elts)


def _literals(places: Sequence[ast.expr | None]) -> list[Any]:
    literals = []
    for place in places:
        with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            literals.append(None if place is None else to_jsonable(ast.literal_eval(_content(place)))[0])
    return literals


def _is_edge(arguments: Mapping[str, Any]) -> bool:
    """Return True if some value in an input is empty, zero, negative, of one item, or twice the same argument."""

    def at_edge(value: object) -> bool:
        if isinstance(value, list | str | dict):
            inside = value.values() if isinstance(value, dict) else value
            return len(value) < 2 or (not isinstance(value, str) and any(map(at_edge, inside)))
        return not value or (isinstance(value, int | float) and value < 0)

    argument_values = list(arguments.values())
    return any(map(at_edge, argument_values)) or any(
        first == second for first, second in itertools.combinations(argument_values, 2)
    )


def _content(place: ast.expr) -> ast.expr:
    """Return the literal content of a frame, a series or an array; otherwise the expression itself."""
    if isinstance(place, ast.Call) and len(place.args) == 1:
        name = ast.unparse(place.func).rpartition(".")[2]
        if name in ("DataFrame", "Series", "array"):
            return place.args[0]
    return place


def _is_telling(value: object, chosen: bool) -> bool:
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
        and _is_fixed_exit(node.body[0])
        for node in ast.walk(tree)
    )


def _is_fixed_exit(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Return):
        return True
    value = statement.value
    empty = (
        isinstance(value, ast.List | ast.Dict | ast.Tuple | ast.Set)
        and not list(ast.iter_child_nodes(value))[:-1]
    )
    return value is None or isinstance(value, ast.Constant) or empty


# Types of results, before and after a patch.

#: A check, its result with the code as it is, and its result with the patch.
_Row = tuple[Check, CheckResult, CheckResult]
_UNORDERED = ("set", "frozenset")
#: Names of annotations, and the names of the types whose values fit. Other annotations say nothing here.
_FITTING: dict[str, tuple[str, ...]] = {
    "int": ("int", "bool"), "float": ("float", "int"), "bool": ("bool",), "str": ("str",), "None": ("NoneType",),
    "list": ("list",), "List": ("list",), "dict": ("dict",), "Dict": ("dict",), "tuple": ("tuple",),
    "Tuple": ("tuple",), "set": _UNORDERED, "Set": _UNORDERED, "frozenset": _UNORDERED,
}  # fmt: skip
#: Types that JSON values have when they arrive here.
_JSON_NAMES = {
    type(None): "NoneType",
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    list: "list",
    dict: "dict",
}


def _displaced(rows: Sequence[_Row]) -> str:
    """Say that a check passes with answers for other arguments, although the unpatched code needed none."""
    calls = sum(now.displaced for _, was, now in rows if now.displaced > was.displaced)
    return f"I{_other_arguments(calls)[1:]}." if calls else ""


def _change_of_type(entry: VaultEntry, rows: Sequence[_Row]) -> str:
    """Say which result has an unexpected type; empty if none has."""
    fitting = returned_types(entry.code, entry.tool_name)
    wrong = [check for check, was, _ in rows if check.binding and was.outcome != "passed"]
    asks_float = any(_has_float(check.expected) for check in wrong)
    passing_types = {type_name(was).partition("[")[0] for _, was, _ in rows if was.outcome == "passed"}
    returned = [row for row in rows if row[2].outcome == "passed" and not row[2].failure]
    for _, was, now in returned:
        old, new = type_name(was), type_name(now)
        if was.outcome == "passed" and old != new and not (asks_float and {old, new} == {"int", "float"}):
            return f"It returns {article(new)}, but the tool returned {article(old)}."
    for check, was, now in returned:
        if check.binding and was.outcome != "passed" and _has_int_for_float(check.expected, now.value):
            return "It returns an int, but the example has a float."
        new = type_name(now)
        outer = new.partition("[")[0]
        if was.outcome == "passed":
            continue
        if fitting and not check.binding and outer not in fitting:
            return f"It returns {article(new)}, which its annotation does not allow."
        if passing_types == {"list"} and outer in ("tuple", *_UNORDERED):
            return f"It returns {article(new)}, but the tool returned a list for other inputs."
        if outer in _UNORDERED and outer not in passing_types | fitting:
            return f"It returns {article(new)}, which has no order."
    return ""


def _new_none(before: str, after: str, checks: Sequence[Check]) -> str:
    """Say that only the new code returns None, although neither an example nor a docstring mentions None."""
    if any(check.known and not check.raises and check.expected is None for check in checks):
        return ""
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    values = [node.value for node in ast.walk(old) if isinstance(node, ast.Return)]
    if not values or any(map(_is_none, values)) or _speaks_of_none(old):
        return ""
    if any(isinstance(node, ast.Return) and _is_none(node.value) for node in ast.walk(new)):
        return "It returns None, but the tool never did."
    return ""


def _lost(rows: Sequence[_Row], *, discreet: bool) -> str:
    """Say which data of its tables a patch loses that no known result shows.

    discreet: Without names and values.
    """
    known_changes, losses, previous = set[Change](), dict[str, Change](), list[tuple[list[Any], Any]]()
    for check, _, now in sorted(rows, key=lambda row: not row[0].known):
        arguments = values.remade(check.arguments) if values.has_tags(check.arguments) else {}
        tables = [value for value in arguments.values() if values.is_tabular(value)]
        result, changes = values.remade(check.expected if check.known else now.value), dict[str, Change]()
        if not tables or check.raises or not values.is_tabular(result):
            continue
        with contextlib.suppress(Exception):  # leave out what cannot be compared
            changes = Seen().made(tables, result, known=check.known)
        same = (values.equal(pair[1], result) and not values.equal(pair[0], tables) for pair in previous)
        if result.shape[:1] != (0,) and any(same):
            changes["It returns the same result for two different tables."] = ("same", "", "")
        previous.append((tables, result))
        (known_changes.update(changes.values()) if check.known else losses.update(changes))
    new_losses = {sentence: change for sentence, change in losses.items() if change not in known_changes}
    if not discreet:
        return " ".join(new_losses)
    return " ".join(
        sentence.replace(at, "").replace(f" {named_value}.", " equal.")
        for sentence, (_, at, named_value) in new_losses.items()
    )


def _removed_argument(before: str, after: str, rows: Sequence[_Row]) -> str:
    """Say that a patch only removes an argument that caused the exception: without it, the error is hidden."""
    trees = _trees(before, after)
    if trees is None:
        return ""
    failure_text = " ".join(
        was.failure for _, was, now in rows if was.outcome == "raised" and now.outcome == "passed"
    )
    named = set(_QUOTED.findall(failure_text))
    old, new = ([node for node in ast.walk(tree) if isinstance(node, ast.Call)] for tree in trees)
    unchanged = Counter(map(ast.dump, new)) & Counter(map(ast.dump, old))
    changed = [call for call in new if ast.dump(call) not in unchanged]
    for call in old if named else ():
        for new_call in changed if ast.dump(call) not in unchanged else ():
            if ast.dump(call.func) != ast.dump(new_call.func):
                continue
            stay = {ast.dump(argument) for argument in (*new_call.args, *new_call.keywords)}
            gone = [argument for argument in (*call.args, *call.keywords) if ast.dump(argument) not in stay]
            if len(call.args) + len(call.keywords) - len(gone) == len(stay) and named & _names(gone):
                return f"It removes the argument `{ast.unparse(gone[0])}`, in which the error occurred."
    return ""


#: A date whose day may be a month.
_AMBIGUOUS = re.compile(r"\b(0?[1-9]|1[0-2])([/.-])(0?[1-9]|1[0-2])\2(\d{4}|\d{2})\b")


def _lossy(before: str, after: str, rows: Sequence[_Row]) -> str:
    """Say that values are made up or left out, and only one example asks for that; or that dates are guessed."""
    trees = _trees(before, after)
    if trees is None:
        return ""
    guesses, fills = ([set(map(ast.dump, find(tree))) for tree in trees] for find in (_guesses, _defaults))
    if guesses[1] - guesses[0]:
        texts = json.dumps([values.as_parts(check.arguments) for check, _, _ in rows], default=str)
        if any(match[1].zfill(2) != match[3].zfill(2) for match in _AMBIGUOUS.finditer(texts)):
            return "In a date among the arguments, the day or the month may come first."
    asking = [check.expected for check, was, _ in rows if check.binding and was.outcome != "passed"]
    if len({json.dumps(answer, sort_keys=True, default=str) for answer in asking}) > 1:
        return ""
    # A guard for a special case is judged by `_makes_up_answer`; a table's cells are filled and dropped by many.
    edit_kind = kind_of(before, after)
    kind = edit_kind if any(values.has_tags(check.arguments) for check, _, _ in rows) else ""
    raised = any(was.outcome == "raised" for _, was, _ in rows)
    if kind == "discards" or (raised and _conditions(trees[1]) > _conditions(trees[0])):
        return "It leaves something out, and only one example asks for that."
    made_up = [sum(map(_is_made_up, ast.walk(tree))) for tree in trees]
    unset = any(was.failure.startswith(("NameError", "UnboundLocalError")) for _, was, _ in rows)
    added = fills[1] - fills[0] or (unset and made_up[1] > made_up[0])
    invents = kind == "invents" or (
        added and edit_kind == "invents"
    )  # what a loop adds up may begin with nothing
    return "It makes up a value, and only one example asks for that." if invents else ""


def _conditions(tree: ast.Module) -> int:
    return sum(len(node.ifs) for node in ast.walk(tree) if isinstance(node, ast.comprehension))


def _defaults(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="get" | "setdefault"), args=[_, default]):
                yield default
            case ast.BoolOp(op=ast.Or(), values=[*_, ast.Constant()]):
                yield node


def _is_made_up(node: ast.AST) -> bool:
    """Return True for an assignment of a constant or of an empty collection."""
    return isinstance(node, ast.Assign) and (isinstance(node.value, ast.Constant) or _is_empty(node.value))


def _guesses(tree: ast.Module) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _guesses_dates(node)]


def _guesses_dates(node: ast.Call) -> bool:
    """Return True for a call that reads dates without saying which number is the day."""
    if not ast.unparse(node.func).endswith("to_datetime"):
        return False
    options = {keyword.arg: getattr(keyword.value, "value", None) for keyword in node.keywords}
    return "dayfirst" not in options and options.get("format") in (None, "mixed")


def _names(parts: Sequence[ast.AST]) -> set[str]:
    """Return the names, attributes, keywords and texts in some expressions."""
    names: set[str] = set()
    for node in itertools.chain.from_iterable(map(ast.walk, parts)):
        name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", None)
        names.add(str(name or getattr(node, "value", "")))
    return names


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _speaks_of_none(tree: ast.Module) -> bool:
    documented = [node for node in ast.walk(tree) if isinstance(node, Function | ast.Module | ast.ClassDef)]
    return any("None" in (ast.get_docstring(node) or "") for node in documented)


def type_name(result: CheckResult) -> str:
    """Return the type of a returned value, as precisely as it is known: `int`, `list`, `list[tuple]`."""
    return result.outline or _JSON_NAMES.get(type(result.value), "object")


def returned_types(code: str, tool: str) -> frozenset[str]:
    """Return the names of the types that a tool's annotation allows as its result; empty if it does not say."""
    try:
        tree = ast.parse(code)
        entry = read_shape(tree, tool).entry
    except (HealkitError, SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    function = next((node for node in tree.body if isinstance(node, Function) and node.name == entry), None)
    return annotated_types(function)


def annotated_types(function: ast.AST | None) -> frozenset[str]:
    """Return the names of the types that a function's return annotation allows; empty if it does not say."""
    annotation = getattr(function, "returns", None)
    return _allowed(annotation) if annotation is not None else frozenset()


def _allowed(node: ast.expr) -> frozenset[str]:
    match node:
        case ast.Constant(value=None):
            return frozenset(_FITTING["None"])
        case ast.Constant(value=str(text)):
            try:
                return _allowed(ast.parse(text, mode="eval").body)
            except (SyntaxError, ValueError):
                return frozenset()
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return frozenset(_FITTING.get(name, ()))
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            left_types, right_types = _allowed(left), _allowed(right)
            return left_types | right_types if left_types and right_types else frozenset()
        case ast.Subscript(value=ast.Name(id="Optional") | ast.Attribute(attr="Optional"), slice=inner):
            inner_types = _allowed(inner)
            return inner_types | frozenset(_FITTING["None"]) if inner_types else inner_types
        case ast.Subscript(value=value):
            return _allowed(value)
    return frozenset()


def _has_int_for_float(expected: object, found: object) -> bool:
    """Return True if a float of an example was met by an int; a float may meet an int that a person wrote."""
    if isinstance(expected, list) and isinstance(found, list):
        return any(map(_has_int_for_float, expected, found))
    if isinstance(expected, dict) and isinstance(found, dict):
        return any(_has_int_for_float(value, found.get(key)) for key, value in expected.items())
    return type(expected) is float and type(found) is int


def _has_float(value: object) -> bool:
    if isinstance(value, list | dict):
        return any(map(_has_float, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float)


# Changes of results that no check asks for.


def _with_change_doubted(
    attempt: Attempt, entry: VaultEntry, changed: dict[str, Any] | None, fitting: frozenset[str]
) -> Attempt:
    names = {type_name(result).partition("[")[0] for result in attempt.results if not result.failure}
    unfit = bool(fitting) and not names <= fitting
    if changed is None:
        return msgspec.structs.replace(attempt, unasked=unfit)
    patch = _doubted(attempt.patch, _change(entry, changed))
    return msgspec.structs.replace(attempt, patch=patch, unasked=True)


def _change(entry: VaultEntry, arguments: dict[str, Any]) -> str:
    call = values.call_text(entry.tool_name, arguments)
    return f"It changes the result of {call}, and no example says what is right there."


def _changed_inputs(
    case: Case, plausible: Sequence[Attempt], bench: Workbench, probes: Sequence[Check]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each attempt that changes another result, and an input with such a result."""
    entry = case.entry
    baseline = dict(bench.score(entry.code, [()], probes, every=True, limit_s=_PROBE_S)).get(0, "")
    probes = [probe for probe, letter in zip(probes, baseline, strict=False) if letter == "."]
    if not probes:
        return
    edits = [[difference(entry.code, attempt.patch.code)] for attempt in plausible]
    scores = bench.score(entry.code, edits, probes, every=True, as_code=True, limit_s=_PROBE_S)
    for place, letters in scores:
        changed = (probe for probe, letter in zip(probes, letters, strict=False) if letter in "we")
        if (first := next(changed, None)) is not None:
            yield plausible[place].number, first.arguments
