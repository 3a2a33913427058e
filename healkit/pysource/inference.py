"""Types of expressions, as far as the code tells them."""

from __future__ import annotations

import ast
from typing import Any

_CALLS = {"str": "str", "int": "int", "float": "float", "len": "int", "list": "list", "dict": "dict", "set": "set",
          "sorted": "list", "tuple": "tuple", "round": "float", "input": "str", "range": "range", "map": "map",
          "filter": "filter", "zip": "zip", "reversed": "list_reverseiterator", "enumerate": "enumerate"}  # fmt: skip
_METHODS = dict.fromkeys(
    ("strip", "lower", "upper", "replace", "join", "title", "format", "lstrip", "rstrip", "capitalize"), "str"
) | {
    "split": "list",
    "splitlines": "list",
    "count": "int",
    "keys": "dict_keys",
    "values": "dict_values",
    "items": "dict_items",
}
_LITERALS: dict[type[ast.expr], str] = {
    ast.JoinedStr: "str", ast.List: "list", ast.ListComp: "list", ast.Dict: "dict", ast.DictComp: "dict",
    ast.Set: "set", ast.SetComp: "set", ast.Tuple: "tuple", ast.GeneratorExp: "generator", ast.Compare: "bool",
}  # fmt: skip


def type_of(node: ast.AST, values: dict[str, Any]) -> str:
    """Return the name of an expression's type, or an empty text where the code does not tell it.

    values: known values by name, such as the arguments of a failed call.
    """
    if type(node) in _LITERALS:
        return _LITERALS[type(node)]  # type: ignore[index]  # `in` says so, which mypy does not see
    match node:
        case ast.Constant(value=value):
            return type(value).__name__
        case ast.Name(id=name) if name in values:
            return type(values[name]).__name__
        case ast.Call(func=ast.Name(id=name)):
            return _CALLS.get(name, "")
        case ast.Call(func=ast.Attribute(attr=name)):
            return _METHODS.get(name, "")
        case ast.BinOp(left=left, op=op, right=right):
            sides = {type_of(left, values), type_of(right, values)}
            if isinstance(op, ast.Add | ast.Mod) and "str" in sides:
                return "str"
            return "float" if isinstance(op, ast.Div) else sides.pop() if len(sides) == 1 else ""
    return ""
