"""Types of results, before and after a patch.

Checks compare values as JSON, which has neither tuples nor sets: an example's list may be met by a tuple, and by a set
too where the tool returned sets before or its annotation says so. What a passing check returned before is known more
exactly, so a patch that passes it with another type is doubted, and the doubt names both types.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from healkit.contracts.healing import Check, CheckResult, Patch
from healkit.contracts.vault import VaultEntry
from healkit.errors import HealkitError
from healkit.healing.verdicts import doubted
from healkit.pysource.nodes import Function
from healkit.pysource.shapes import read_shape

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


def doubt_types(
    patch: Patch,
    entry: VaultEntry,
    checks: Sequence[Check],
    unpatched: Sequence[CheckResult],
    patched: Sequence[CheckResult],
) -> Patch:
    """Return a patch that passes, with a doubt that names the types if a result has an unexpected one.

    unpatched, patched: the checks' results without the patch and with it.
    """
    rows = list(zip(checks, unpatched, patched, strict=True))
    doubt = _change_of_type(entry, rows) or _new_none(entry.code, patch.code, checks)
    return doubted(patch, doubt) if doubt else patch


def _change_of_type(entry: VaultEntry, rows: Sequence[_Row]) -> str:
    """Say which result has an unexpected type; empty if none has."""
    fitting = returned_types(entry.code, entry.tool_name)
    wrong = [check for check, was, _ in rows if check.binding and was.outcome != "passed"]
    asks_float = any(_has_float(check.expected) for check in wrong)
    known = {type_name(was).partition("[")[0] for _, was, _ in rows if was.outcome == "passed"}
    returned = [row for row in rows if row[2].outcome == "passed" and not row[2].failure]
    for _, was, now in returned:
        old, new = type_name(was), type_name(now)
        if was.outcome == "passed" and old != new and not (asks_float and {old, new} == {"int", "float"}):
            return f"It returns {_a(new)} where the tool returned {_a(old)}."
    for check, was, now in returned:
        new = type_name(now)
        outer = new.partition("[")[0]
        if was.outcome == "passed":
            continue
        if fitting and not check.binding and outer not in fitting:
            return f"It returns {_a(new)}, which its annotation does not allow."
        if known == {"list"} and outer in ("tuple", *_UNORDERED):
            return f"It returns {_a(new)} where the tool returned a list for other inputs."
        if outer in _UNORDERED and outer not in known | fitting:
            return f"It returns {_a(new)}, which has no order."
    return ""


def _new_none(before: str, after: str, checks: Sequence[Check]) -> str:
    """Say that only the new code returns None, where neither an example nor a docstring speaks of None."""
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
        return "It returns None, which the tool never did."
    return ""


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _speaks_of_none(tree: ast.Module) -> bool:
    documented = [node for node in ast.walk(tree) if isinstance(node, Function | ast.Module | ast.ClassDef)]
    return any("None" in (ast.get_docstring(node) or "") for node in documented)


def type_name(result: CheckResult) -> str:
    """Return the type of a returned value, as exactly as it is known: `int`, `list`, `list[tuple]`."""
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
            one, other = _allowed(left), _allowed(right)
            return one | other if one and other else frozenset()
        case ast.Subscript(value=ast.Name(id="Optional") | ast.Attribute(attr="Optional"), slice=inner):
            found = _allowed(inner)
            return found | frozenset(_FITTING["None"]) if found else found
        case ast.Subscript(value=value):
            return _allowed(value)
    return frozenset()


def _has_float(value: Any) -> bool:
    if isinstance(value, list | dict):
        return any(map(_has_float, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float)


def _a(name: str) -> str:
    if name == "NoneType":
        return "None"
    return f"an {name}" if name[:1] in "aeiou" else f"a {name}"
