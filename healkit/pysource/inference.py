"""Types of expressions, as far as the code tells them.

The tables say what built-in functions, literals and methods of common types return. A method name stands for one type
only where nearly all code means that one.
"""

from __future__ import annotations

import ast
from typing import Any

#: Function → type name of its result.
FUNCTION_RESULTS = {
    "len": "int", "int": "int", "str": "str", "float": "float", "bool": "bool", "list": "list", "dict": "dict",
    "set": "set", "tuple": "tuple", "sorted": "list", "range": "range", "any": "bool", "all": "bool", "ord": "int",
    "isinstance": "bool", "chr": "str", "repr": "str", "enumerate": "enumerate", "zip": "zip", "map": "map",
    "filter": "filter", "reversed": "list_reverseiterator", "input": "str", "hash": "int", "round": "float",
    "frozenset": "frozenset", "defaultdict": "defaultdict", "Counter": "Counter", "deque": "deque", "floor": "int",
    "ceil": "int", "sqrt": "float", "divmod": "tuple",
}  # fmt: skip
#: Types of the iterators that functions return.
ITERATORS = frozenset({"enumerate", "zip", "map", "filter", "list_reverseiterator"})
#: Method → type name of its result.
METHOD_RESULTS = {
    "split": "list", "rsplit": "list", "splitlines": "list", "join": "str", "strip": "str", "lstrip": "str",
    "rstrip": "str", "lower": "str", "upper": "str", "title": "str", "capitalize": "str", "replace": "str",
    "format": "str", "find": "int", "rfind": "int", "index": "int", "count": "int", "startswith": "bool",
    "endswith": "bool", "isdigit": "bool", "isalpha": "bool", "isalnum": "bool", "isspace": "bool", "isupper": "bool",
    "islower": "bool", "items": "dict_items", "keys": "dict_keys", "values": "dict_values", "zfill": "str",
    "ljust": "str", "rjust": "str", "center": "str", "strftime": "str", "isoformat": "str", "findall": "list",
    "group": "str", "swapcase": "str", "casefold": "str",
}  # fmt: skip
#: Kind of expression → type name.
LITERALS: dict[type[ast.expr], str] = {
    ast.List: "list", ast.ListComp: "list", ast.Tuple: "tuple", ast.Dict: "dict", ast.DictComp: "dict",
    ast.Set: "set", ast.SetComp: "set", ast.GeneratorExp: "generator", ast.JoinedStr: "str", ast.Compare: "bool",
    ast.Lambda: "function",
}  # fmt: skip


def type_of(node: ast.AST, values: dict[str, Any]) -> str:
    """Return the name of an expression's type, or an empty text if the code does not tell it.

    values: known values by name, such as the arguments of a failed call.
    """
    match node:
        case ast.Constant(value=value):
            return type(value).__name__
        case ast.Name(id=name) if name in values:
            return type(values[name]).__name__
        case ast.Call(func=ast.Name(id=name)):
            return FUNCTION_RESULTS.get(name, "")
        case ast.Call(func=ast.Attribute(attr=name)):
            return METHOD_RESULTS.get(name, "")
        case ast.BinOp(left=left, op=op, right=right):
            sides = {type_of(left, values), type_of(right, values)}
            if isinstance(op, ast.Add | ast.Mod) and "str" in sides:
                return "str"
            return "float" if isinstance(op, ast.Div) else sides.pop() if len(sides) == 1 else ""
        case ast.expr():
            return LITERALS.get(type(node), "")
    return ""
