"""Ingredients of patches: conditions, values, statements.

Most of what a wrong program lacks is somewhere in it already, or in another program for the same purpose (the "plastic
surgery hypothesis", Barr et al. 2014). Constants of the expected values are added. An ingredient is offered only where
its names are in scope.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from typing import Any

from healkit import values
from healkit.contracts.healing import Check
from healkit.healing.advisors.search.program import Program
from healkit.healing.advisors.search.type_guesses import COLLECTIONS, NUMBERS
from healkit.healing.result_types import annotated_types
from healkit.pysource.scope import free_names

_MOST_CONSTANTS, _MOST_CONDITIONS, _MOST_COLUMNS = 40, 60, 30
#: How many texts of the arguments are used, and how long they may be.
_MOST_GIVEN, _GIVEN_MAX_CHARS = 6, 12


def constants(checks: list[Check]) -> tuple[str, ...]:
    """Return Python literals of the expected values (scalars and keys), then of given records' keys and short texts."""
    found: dict[str, None] = {}
    for check in checks:
        if check.known and not check.raises:
            for value in _leaves(values.as_parts(check.expected)):
                if not (isinstance(value, str) and len(value) > 60):
                    found[repr(value)] = None
    for check in checks:
        found.update(dict.fromkeys(map(repr, _keys(values.as_parts(check.arguments)))))
    arguments = [values.as_parts(check.arguments) for check in checks]
    given = [text for known in arguments for text in _leaves(known) if _is_short_text(text)]
    found.update(dict.fromkeys(map(repr, given[:_MOST_GIVEN])))
    return tuple(found)[:_MOST_CONSTANTS]


def frame_columns(checks: list[Check]) -> tuple[str, ...]:
    """Return the names of the columns of the checks' frames: those of expected frames first."""
    tagged = [
        check for check in checks if values.has_tags(check.expected) or values.has_tags(check.arguments)
    ]
    found: dict[str, None] = {}
    for check in tagged:
        found.update(dict.fromkeys(_column_names(values.remade(check.expected))))
    for check in tagged:
        for value in check.arguments.values():
            found.update(dict.fromkeys(_column_names(values.remade(value))))
    return tuple(found)[:_MOST_COLUMNS]


def _column_names(value: Any) -> list[str]:
    names = list(getattr(value, "columns", ())) if type(value).__name__ == "DataFrame" else []
    return [name for name in names if isinstance(name, str)]


def _is_short_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _GIVEN_MAX_CHARS


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield key
            yield from _leaves(inside)
    elif isinstance(value, list):
        if not value:
            yield []
        for inside in value[:12]:
            yield from _leaves(inside)
    elif value == "Infinity":
        return
    else:
        yield value
        if isinstance(value, str):
            yield from re.findall(r"[^\w\s]+ ?", value)[:3]


def _keys(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the keys of the records in a tool's arguments; the names of the arguments are left out."""
    if isinstance(value, dict):
        if depth:
            yield from (key for key in value if key.isidentifier())
        for inside in value.values():
            yield from _keys(inside, depth + 1)
    elif isinstance(value, list):
        for inside in value[:3]:
            yield from _keys(inside, depth + 1)


@functools.lru_cache(maxsize=32)
def _peers(program: Program) -> tuple[Program, ...]:
    found = []
    for text in program.hints.peers:
        try:
            found.append(Program(text))
        except (SyntaxError, ValueError):
            continue
    return tuple(found)


@functools.lru_cache(maxsize=32)
def _mined_conditions(program: Program) -> dict[str, frozenset[str]]:
    """Return the conditions of the program and its peers, each with the names that it needs."""
    found: dict[str, frozenset[str]] = {}
    for one in (program, *_peers(program)):
        for node in one.nodes:
            tests = getattr(node, "ifs", None) or (
                [node.test] if isinstance(node, ast.If | ast.While | ast.IfExp) else []
            )
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Compare | ast.BoolOp):
                tests = [node.value]
            for test in tests:
                parts = test.values if isinstance(test, ast.BoolOp) else []
                for part in [test, *parts]:
                    text = one.segment(part)
                    if not isinstance(part, ast.Constant) and "\n" not in text and len(text) < 80:
                        found[text if not isinstance(part, ast.BoolOp) else f"({text})"] = free_names(part)
    return found


def conditions(program: Program, node: ast.AST) -> list[str]:
    """Return conditions for a node: the program's own, its peers', and tests of the names in scope."""
    names = program.names(node)
    known = {*names, *program.defined, *_imported(program)}
    found = {text: None for text, needed in _mined_conditions(program).items() if needed <= known}
    mined = list(found)
    for name in names[:10]:
        kinds = program.types(name, node)
        if not kinds or not kinds <= {"function", "type", "module"}:
            found[f"not {name}"] = None
            if "str" in kinds:
                found[f"not {name}.strip()"] = None
            if not kinds or kinds & NUMBERS:
                for ask in ("== 0", "<= 0", "< 0", "== 1", "<= 1", "> 0"):
                    found[f"{name} {ask}"] = None
            if not kinds or kinds & COLLECTIONS:
                found[f"len({name}) == 1"] = None
                found[f"len({name}) < 2"] = None
            if not kinds or "NoneType" in kinds:
                found[f"{name} is None"] = None
            if not kinds - NUMBERS:
                found[f"{name}"] = None
    for first in names[:8]:
        for second in names[:8]:
            one, other = program.types(first, node), program.types(second, node)
            if first != second and one & other & NUMBERS and first < second:
                for ask in ("==", "<", ">"):
                    found[f"{first} {ask} {second}"] = None
            elif first != second and other & COLLECTIONS and not one & COLLECTIONS:
                found[f"{first} not in {second}"] = None
                found[f"{first} in {second}"] = None
            elif first != second and one & other & {"str"}:
                found[f"{first} == {second}"] = None
    both = [
        f"{one} and {other}"
        for one, other in itertools.combinations(mined[:5], 2)
        if " and " not in one + other
    ]
    return list(dict.fromkeys([*mined, *both, *found]))[:_MOST_CONDITIONS]


@functools.lru_cache(maxsize=32)
def _imported(program: Program) -> frozenset[str]:
    return frozenset(
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )


@functools.lru_cache(maxsize=256)
def results(program: Program, function: ast.AST) -> tuple[str, ...]:
    """Return values that a function may return early: its own plain results, expected values, parameters."""
    found: dict[str, None] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(
            node.value, ast.Constant | ast.List | ast.Name | ast.Dict | ast.UnaryOp
        ):
            text = program.segment(node.value)
            if len(text) < 30 and free_names(node.value) <= set(program.locals(function)[:8]):
                found[text] = None
    for text in ("0", "1", "[]", "''", "False", "True", "None", "-1", "[[]]", "{}", "0.0"):
        found[text] = None
    found.update(dict.fromkeys(program.hints.constants[:8]))
    found.update(dict.fromkeys(name for name in program.locals(function)[:4]))
    args = getattr(function, "args", None)
    if args is not None:
        for arg in args.args[:3]:
            if arg.arg != "self":
                found[arg.arg] = None
                found[f"[{arg.arg}]"] = None
    allowed = annotated_types(function)
    return tuple(text for text in found if _fits(text, allowed))[:24]


def _fits(text: str, allowed: frozenset[str]) -> bool:
    """Return whether an annotation allows a literal; a name may be anything."""
    if not allowed:
        return True
    try:
        return type(ast.literal_eval(text)).__name__ in allowed
    except (ValueError, SyntaxError):
        return True


@functools.lru_cache(maxsize=32)
def _mined_expressions(program: Program) -> dict[str, tuple[ast.expr | None, frozenset[str]]]:
    found: dict[str, tuple[ast.expr | None, frozenset[str]]] = {}
    for one in (program, *_peers(program)):
        for node in one.nodes:
            if not isinstance(
                node,
                ast.Call | ast.Subscript | ast.BinOp | ast.Attribute | ast.IfExp | ast.Compare | ast.ListComp,
            ):
                continue
            if not one.is_value(node) or one.field(node) == "func":
                continue
            text = one.segment(node)
            if "\n" not in text and len(text) < 60:
                found.setdefault(text, (node if one is program else None, free_names(node)))
    return found


def expressions(program: Program, node: ast.AST) -> list[tuple[ast.expr | None, str]]:
    """Return expressions (the program's own with their node) whose names are in scope at a node."""
    known = {*program.names(node), *program.defined, *_imported(program)}
    return [
        (found, text) for text, (found, needed) in _mined_expressions(program).items() if needed <= known
    ][:50]


@functools.lru_cache(maxsize=32)
def _mined_statements(program: Program) -> dict[str, tuple[ast.stmt, frozenset[str], float]]:
    found: dict[str, tuple[ast.stmt, frozenset[str], float]] = {}
    for one in (program, *_peers(program)):
        for node in one.places:
            if not isinstance(
                node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return | ast.Break | ast.Continue
            ):
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            text = one.segment(node)
            if "\n" not in text and len(text) < 90:
                found.setdefault(text, (node, free_names(node), 1.0 if one is program else 1.4))
    return found


def statements(program: Program, node: ast.stmt) -> list[tuple[str, float]]:
    """Return simple statements for a place, with weights; some with one of their names exchanged."""
    names = program.names(node)
    known = {*names, *program.defined, *_imported(program)}
    found: dict[str, float] = {}
    for text, (statement, needed, weight) in _mined_statements(program).items():
        if needed <= known:
            found.setdefault(text, weight)
        if isinstance(statement, ast.Return):
            continue
        for old in sorted(needed & {part.id for part in ast.walk(statement) if isinstance(part, ast.Name)}):
            if needed - {old} <= known:
                for new in names[:8]:
                    if new != old:
                        found.setdefault(re.sub(rf"\b{re.escape(old)}\b", new, text), weight * 0.75)
    return list(found.items())[:90]
