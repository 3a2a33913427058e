"""Edits that exchange similar functions and methods."""

from __future__ import annotations

import ast

from healkit.contracts.healing import Edit
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program

_FUNCTIONS = (
    ("min", "max", "sum"), ("any", "all"), ("int", "float", "round", "str"), ("list", "tuple", "set", "sorted", "dict"),
    ("sorted", "reversed", "list"), ("range", "enumerate", "len"), ("zip", "enumerate"), ("floor", "ceil", "round", "trunc"),
    ("len", "sum", "max"), ("abs", "int", "round"), ("math.floor", "math.ceil", "round", "int", "math.trunc"), ("map", "filter"),
    ("match", "search", "fullmatch", "findall", "finditer"), ("heappush", "heappop", "heappushpop", "heapreplace"),
    ("bisect_left", "bisect_right", "bisect", "insort"), ("permutations", "combinations", "combinations_with_replacement", "product"),
    ("mean", "median", "mode"), ("stdev", "pstdev"), ("variance", "pvariance"), ("math.sqrt", "math.log", "math.exp"),
    ("log", "log2", "log10", "log1p"), ("sin", "cos", "tan"), ("ord", "chr"), ("str", "repr", "ascii"), ("isinstance", "issubclass"),
    ("dict", "Counter", "defaultdict", "OrderedDict"), ("copy", "deepcopy"), ("setattr", "getattr", "hasattr"), ("min", "sorted", "len"),
)  # fmt: skip
_METHODS = (
    ("append", "extend", "insert", "add", "appendleft", "remove"), ("pop", "popleft"), ("update", "add", "setdefault"),
    ("strip", "lstrip", "rstrip", "removeprefix", "removesuffix"), ("lower", "upper", "title", "capitalize", "casefold", "swapcase"),
    ("keys", "values", "items"), ("find", "rfind", "index", "rindex", "count"), ("split", "rsplit", "splitlines", "partition", "rpartition"),
    ("startswith", "endswith"), ("isdigit", "isalpha", "isalnum", "isnumeric", "isspace", "isdecimal"), ("islower", "isupper"),
    ("union", "intersection", "difference", "symmetric_difference"), ("issubset", "issuperset", "isdisjoint"), ("discard", "remove", "add"),
    ("ljust", "rjust", "center", "zfill"), ("get", "pop", "setdefault"), ("match", "search", "fullmatch", "findall", "finditer", "sub"),
    ("group", "groups"), ("most_common", "items"), ("total_seconds", "days", "seconds"), ("weekday", "isoweekday"), ("add", "update"),
    ("strptime", "strftime"), ("date", "time"), ("sort", "reverse"), ("copy", "clear"), ("floor", "ceil", "trunc"), ("log", "log2", "log10"),
    ("append", "appendleft"), ("extend", "extendleft"), ("sqrt", "isqrt"), ("bisect_left", "bisect_right"), ("combinations", "permutations", "product"),
    ("mean", "median", "mode"), ("start", "end", "span"), ("heappop", "heappush", "nlargest", "nsmallest"), ("load", "loads"), ("dump", "dumps"),
    ("isoformat", "strftime"), ("encode", "decode"), ("stdev", "pstdev"), ("variance", "pvariance"), ("randint", "randrange"), ("nlargest", "nsmallest"),
)  # fmt: skip
_NAMES = (
    ("days", "seconds", "total_seconds()"),
    ("year", "month", "day"),
    ("hour", "minute", "second"),
    ("numerator", "denominator"),
)


def _family(name: str, families: tuple[tuple[str, ...], ...]) -> list[str]:
    found: dict[str, None] = {}
    for family in families:
        if name in family:
            found.update(dict.fromkeys(other for other in family if other != name))
    return list(found)


@operator(
    "a similar function",
    0.8,
    ast.Name,
    ast.Attribute,
    before="x = min(a, b)",
    after="x = max(a, b)",
)
def change_function(program: Program, node: ast.Name | ast.Attribute) -> Changes:
    if not program.is_value(node) or program.parents[node][1] not in ("func", "args", "value"):
        return
    name = program.segment(node)
    if isinstance(node, ast.Name) and name in program.names(node):
        return
    for other in _family(name, _FUNCTIONS):
        weight = 1.0 if program.field(node) == "func" else 0.5
        if (name, other) == ("sorted", "set"):  # sorting is done for an order, which a set does not have
            weight *= 0.4
        yield from program.put(node, other, weight)


@operator("a similar method", 0.8, ast.Attribute, before="x = s.lower()", after="x = s.upper()")
def change_method(program: Program, node: ast.Attribute) -> Changes:
    if program.field(node) != "func":
        for other in _family(node.attr, _NAMES):
            yield from program.put(node, f"{program.segment(node.value)}.{other}")
        return
    end = program.source.span(node)[1]
    for position, other in enumerate(_family(node.attr, _METHODS)):
        yield Change((Edit(end - len(node.attr), end, other),), 1.0 - 0.08 * min(position, 6))


@operator(
    "a dictionary key with a default",
    0.45,
    ast.Assign,
    ast.AugAssign,
    ast.Expr,
    before="d[k] += 1",
    after="d[k] = d.get(k, 0) + 1",
)
def update_by_key(program: Program, node: ast.Assign | ast.AugAssign | ast.Expr) -> Changes:
    """Update a dictionary's value by key: start from a default, and add to it instead of replacing it."""
    span = program.source.span(node)
    if isinstance(node, ast.Expr):
        call = node.value
        if not (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Subscript)
        ):
            return
        place, value = (
            call.func.value,
            program.text[program.source.span(call.func)[1] : program.source.span(call)[1]],
        )
        for start, method in (("[]", call.func.attr), ("set()", call.func.attr)):
            own, key = _place(program, place)
            yield Change((Edit(*span, f"{own}.setdefault({key}, {start}).{method}{value}"),))
        return
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Slice):
        return
    own, key = _place(program, target)
    value = program.segment(node.value)
    inner = (
        program.segment(node.value.elts[0])
        if isinstance(node.value, ast.List) and len(node.value.elts) == 1
        else value
    )
    texts = [f"{own}[{key}] = {own}.get({key}, {start}) + {value}" for start in ("0", "''", "[]", "1")]
    texts += [f"{own}.setdefault({key}, []).append({inner})", f"{own}.setdefault({key}, set()).add({inner})"]
    texts += [f"{own}.setdefault({key}, {value})"]
    for text in texts:
        yield Change((Edit(*span, text),))


def _place(program: Program, node: ast.Subscript) -> tuple[str, str]:
    key = program.segment(node.slice)
    bare = isinstance(node.slice, ast.Tuple) and not key.startswith("(")
    return program.piece(node.value, 16), f"({key})" if bare else key
