"""Guesses of the types of expressions.

They come from literals, from the results of built-in functions and methods, and from types seen at run time. An
empty set means that nothing is known. Guesses serve to leave out changes that could only raise a TypeError.
"""

from __future__ import annotations

import ast

from healkit.healing.advisors.search.program import Program
from healkit.pysource.inference import FUNCTION_RESULTS, ITERATORS, LITERALS, METHOD_RESULTS

TypeNames = frozenset[str]
UNKNOWN: TypeNames = frozenset()
NUMBERS: TypeNames = frozenset({"int", "float", "bool", "complex", "Decimal", "Fraction"})
SEQUENCES: TypeNames = frozenset({"list", "str", "tuple", "bytes", "range", "deque"})
COLLECTIONS: TypeNames = SEQUENCES | {
    "dict", "set", "frozenset", "defaultdict", "Counter", "OrderedDict", "dict_keys", "dict_values", "dict_items",
    "generator",
}  # fmt: skip

#: `round` is left out: it returns an int or a float.
_CALLS = {
    name: "generator" if result in ITERATORS else result
    for name, result in FUNCTION_RESULTS.items()
    if name != "round"
}


def guess_types(program: Program, node: ast.expr) -> TypeNames:
    """Return the type names that an expression's value may have; empty if nothing is known."""
    if isinstance(node, ast.Constant):
        return frozenset({type(node.value).__name__})
    if (literal := LITERALS.get(type(node))) is not None:
        return frozenset({literal})
    if isinstance(node, ast.Name):
        return program.types(node.id, node)
    if isinstance(node, ast.Call):
        return _of_call(node)
    if isinstance(node, ast.UnaryOp):
        return frozenset({"bool"}) if isinstance(node.op, ast.Not) else guess_types(program, node.operand)
    if isinstance(node, ast.BinOp):
        return _of_binary(program, node)
    if isinstance(node, ast.Subscript):
        inside = guess_types(program, node.value)
        return inside if isinstance(node.slice, ast.Slice) or inside == {"str"} else UNKNOWN
    if isinstance(node, ast.IfExp):
        return guess_types(program, node.body) | guess_types(program, node.orelse)
    return UNKNOWN


def _of_call(node: ast.Call) -> TypeNames:
    if isinstance(node.func, ast.Name):
        found = _CALLS.get(node.func.id)
    elif isinstance(node.func, ast.Attribute):
        found = METHOD_RESULTS.get(node.func.attr)
        if isinstance(node.func.value, ast.Name) and node.func.value.id in ("math", "np", "numpy"):
            found = _CALLS.get(node.func.attr)
    else:
        found = None
    return frozenset({found}) if found else UNKNOWN


def _of_binary(program: Program, node: ast.BinOp) -> TypeNames:
    left, right = guess_types(program, node.left), guess_types(program, node.right)
    if isinstance(node.op, ast.Div):
        return frozenset({"float"}) if left and left <= NUMBERS else UNKNOWN
    if left and right and left <= NUMBERS and right <= NUMBERS:
        return frozenset({"float"}) if "float" in left | right else frozenset({"int"})
    if isinstance(node.op, ast.Add) or (isinstance(node.op, ast.Mod) and left == {"str"}):
        return left or right
    return left if left and left <= SEQUENCES else UNKNOWN


def may_have_type(kinds: TypeNames, wanted: TypeNames) -> bool:
    """Return whether a value of some of these types may have one of those; unknown types may be anything."""
    return not kinds or bool(kinds & wanted)


def type_agreement(first: TypeNames, second: TypeNames) -> float:
    """Return how likely one type can replace another: 1 same, 0.65 unknown, 0.5 related, 0 never."""
    if not first or not second:
        return 0.65
    if first & second:
        return 1.0
    related = (first <= NUMBERS and second <= NUMBERS) or (first <= COLLECTIONS and second <= COLLECTIONS)
    return 0.5 if related or "NoneType" in first | second else 0.0
