"""Edits of calls: arguments, other functions, added calls."""

from __future__ import annotations

import ast

from healkit.core.contracts.patches import Edit
from healkit.parts.explain.source import ATOM
from healkit.parts.heal.advisors.search.operators.definition import Changes, operator
from healkit.parts.heal.advisors.search.program import (
    COLLECTIONS,
    NUMBERS,
    Change,
    Program,
    guess_types,
    may_have_type,
)


@operator("two arguments swapped", 0.9, ast.Call, before="x = f(a, b)", after="x = f(b, a)")
def swap_arguments(program: Program, node: ast.Call) -> Changes:
    args = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
    commutes = isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
    for first in range(len(args)):
        for second in range(first + 1, len(args)):
            first_argument, second_argument = args[first], args[second]
            if commutes or program.segment(first_argument) == program.segment(second_argument):
                continue
            yield program.swap(first_argument, second_argument, 1.0 if second == first + 1 else 0.8)


def _without(program: Program, parts: list[ast.expr] | list[ast.AST], leave: int) -> Edit:
    """Return the edit that removes one part of a comma-separated list, with its comma."""
    start, stop = program.source.span(parts[leave])
    if leave + 1 < len(parts):
        return Edit(start, program.source.span(parts[leave + 1])[0], "")
    if leave:
        return Edit(program.source.span(parts[leave - 1])[1], stop, "")
    return Edit(start, stop, "")


@operator("an argument removed", 0.5, ast.Call, before="x = f(a, b)", after="x = f(a)")
def drop_argument(program: Program, node: ast.Call) -> Changes:
    parts: list[ast.AST] = [*node.args, *node.keywords]
    if any(program.source.in_parentheses(part) and len(parts) > 1 for part in node.args):
        return
    for leave in range(len(parts)):
        yield Change((_without(program, parts, leave),), 1.0)


@operator("a call replaced by its argument", 0.7, ast.Call, before="x = len(a)", after="x = a")
def unwrap_call(program: Program, node: ast.Call) -> Changes:
    if len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
        yield from program.put(node, program.segment(node.args[0]))
    elif node.args and not isinstance(node.args[0], ast.Starred):
        for arg in node.args:
            if not isinstance(arg, ast.Starred):
                yield from program.put(node, program.segment(arg), 0.6)


@operator(
    "call parentheses added or removed",
    0.5,
    ast.Call,
    ast.Name,
    ast.Attribute,
    before="x = a.lower\n",
    after="x = a.lower()\n",
)
def call_or_name(program: Program, node: ast.expr) -> Changes:
    if isinstance(node, ast.Call):
        if not node.args and not node.keywords:
            yield from program.put(node, program.segment(node.func), 0.6)
        return
    if (
        not program.is_value(node)
        or program.field(node) == "func"
        or isinstance(program.parent(node), ast.Attribute)
    ):
        return
    is_callable = isinstance(node, ast.Attribute) or (
        isinstance(node, ast.Name) and node.id in program.defined
    )
    if is_callable and not guess_types(program, node):
        yield from program.put(node, f"{program.segment(node)}()", 1.0)


# Similar functions and methods.


_SIMILAR_FUNCTIONS = (
    ("min", "max", "sum"), ("any", "all"), ("int", "float", "round", "str"), ("list", "tuple", "set", "sorted", "dict"),
    ("sorted", "reversed", "list"), ("range", "enumerate", "len"), ("zip", "enumerate"), ("floor", "ceil", "round", "trunc"),
    ("len", "sum", "max"), ("abs", "int", "round"), ("math.floor", "math.ceil", "round", "int", "math.trunc"), ("map", "filter"),
    ("match", "search", "fullmatch", "findall", "finditer"), ("heappush", "heappop", "heappushpop", "heapreplace"),
    ("bisect_left", "bisect_right", "bisect", "insort"), ("permutations", "combinations", "combinations_with_replacement", "product"),
    ("mean", "median", "mode"), ("stdev", "pstdev"), ("variance", "pvariance"), ("math.sqrt", "math.log", "math.exp"),
    ("log", "log2", "log10", "log1p"), ("sin", "cos", "tan"), ("ord", "chr"), ("str", "repr", "ascii"), ("isinstance", "issubclass"),
    ("dict", "Counter", "defaultdict", "OrderedDict"), ("copy", "deepcopy"), ("setattr", "getattr", "hasattr"), ("min", "sorted", "len"),
)  # fmt: skip
_SIMILAR_METHODS = (
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
    ("read", "readline", "readlines"),
    ("isoformat", "strftime"), ("encode", "decode"), ("stdev", "pstdev"), ("variance", "pvariance"), ("randint", "randrange"), ("nlargest", "nsmallest"),
)  # fmt: skip
_NAMES = (
    ("days", "seconds", "total_seconds()"),
    ("year", "month", "day"),
    ("hour", "minute", "second"),
    ("numerator", "denominator"),
)


def _family(name: str, families: tuple[tuple[str, ...], ...]) -> list[str]:
    members: dict[str, None] = {}
    for family in families:
        if name in family:
            members.update(dict.fromkeys(member for member in family if member != name))
    return list(members)


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
    for alternative in _family(name, _SIMILAR_FUNCTIONS):
        weight = 1.0 if program.field(node) == "func" else 0.5
        if (name, alternative) == (
            "sorted",
            "set",
        ):  # sorting is done for an order, which a set does not have
            weight *= 0.4
        yield from program.put(node, alternative, weight)


@operator("a similar method", 0.8, ast.Attribute, before="x = s.lower()", after="x = s.upper()")
def change_method(program: Program, node: ast.Attribute) -> Changes:
    if program.field(node) != "func":
        for alternative in _family(node.attr, _NAMES):
            yield from program.put(node, f"{program.segment(node.value)}.{alternative}")
        return
    end = program.source.span(node)[1]
    for position, alternative in enumerate(_family(node.attr, _SIMILAR_METHODS)):
        yield Change((Edit(end - len(node.attr), end, alternative),), 1.0 - 0.08 * min(position, 6))


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
            owner, key = _own_and_key(program, place)
            yield Change((Edit(*span, f"{owner}.setdefault({key}, {start}).{method}{value}"),))
        return
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Slice):
        return
    owner, key = _own_and_key(program, target)
    value = program.segment(node.value)
    inner = (
        program.segment(node.value.elts[0])
        if isinstance(node.value, ast.List) and len(node.value.elts) == 1
        else value
    )
    texts = [f"{owner}[{key}] = {owner}.get({key}, {start}) + {value}" for start in ("0", "''", "[]", "1")]
    texts += [
        f"{owner}.setdefault({key}, []).append({inner})",
        f"{owner}.setdefault({key}, set()).add({inner})",
    ]
    texts += [f"{owner}.setdefault({key}, {value})"]
    for text in texts:
        yield Change((Edit(*span, text),))


def _own_and_key(program: Program, node: ast.Subscript) -> tuple[str, str]:
    key = program.segment(node.slice)
    bare = isinstance(node.slice, ast.Tuple) and not key.startswith("(")
    return program.piece(node.value, 16), f"({key})" if bare else key


# A call put around an expression.


#: Function, types that it may wrap, weight.
_ADDED_FUNCTIONS: tuple[tuple[str, frozenset[str], float], ...] = (
    ("len", COLLECTIONS, 1.0), ("abs", NUMBERS, 1.0), ("int", NUMBERS | {"str"}, 1.0), ("str", NUMBERS | {"NoneType", "list"}, 1.0),
    ("float", frozenset({"int", "str"}), 0.7), ("list", COLLECTIONS, 0.9), ("sorted", COLLECTIONS, 0.9), ("set", COLLECTIONS, 0.8),
    ("sum", COLLECTIONS - {"str"}, 0.7), ("tuple", COLLECTIONS, 0.6), ("max", COLLECTIONS, 0.5), ("min", COLLECTIONS, 0.5),
    ("round", frozenset({"float", "int"}), 0.8), ("range", frozenset({"int"}), 0.7), ("reversed", COLLECTIONS, 0.5), ("bool", frozenset(), 0.4),
    ("enumerate", COLLECTIONS, 0.5), ("dict", frozenset({"list", "dict", "defaultdict", "Counter", "generator"}), 0.5), ("not ", frozenset(), 0.5),
)  # fmt: skip
_TEXTS = frozenset({"str"})
_ADDED_METHODS: tuple[tuple[str, frozenset[str], float], ...] = (
    ("lower()", _TEXTS, 1.0), ("strip()", _TEXTS, 1.0), ("split()", _TEXTS, 0.8), ("upper()", _TEXTS, 0.8), ("title()", _TEXTS, 0.4),
    ("capitalize()", _TEXTS, 0.4), ("copy()", COLLECTIONS - _TEXTS, 0.8), ("items()", frozenset({"dict", "Counter", "defaultdict"}), 0.8),
    ("values()", frozenset({"dict", "Counter", "defaultdict"}), 0.8), ("keys()", frozenset({"dict"}), 0.3), ("rstrip()", _TEXTS, 0.5),
    ("isdigit()", _TEXTS, 0.5), ("isalpha()", _TEXTS, 0.5), ("isalnum()", _TEXTS, 0.5), ("casefold()", _TEXTS, 0.3), ("lstrip()", _TEXTS, 0.3),
    ("date()", frozenset({"datetime"}), 0.7), ("total_seconds()", frozenset({"timedelta"}), 0.8), ("isoformat()", frozenset({"datetime", "date"}), 0.6),
    ("group()", frozenset({"Match"}), 0.8),
)  # fmt: skip


def _place(program: Program, node: ast.expr) -> float:
    """Return how likely an expression in that place lacks a call; 0 if no call can be there."""
    parent, field = program.parents[node]
    if (
        not program.is_value(node)
        or field == "func"
        or isinstance(parent, ast.Expr | ast.Attribute | ast.JoinedStr)
    ):
        return 0.0
    if isinstance(node, ast.Constant | ast.Lambda | ast.JoinedStr | ast.BoolOp):
        return 0.0
    if isinstance(parent, ast.Subscript) and field == "value":
        return 0.5
    return 1.0


@operator(
    "a function call added around a value", 0.3, ast.expr, most=1.3, before="x = f(a)", after="x = f(len(a))"
)
def wrap_in_function(program: Program, node: ast.expr) -> Changes:
    if not (share := _place(program, node)):
        return
    kinds = guess_types(program, node)
    around = program.parent(node)
    callee = program.segment(around.func) if isinstance(around, ast.Call) else ""
    for name, wanted, weight in _ADDED_FUNCTIONS:
        if name == callee or (wanted and not may_have_type(kinds, wanted)):
            continue
        likely = 1.3 if kinds and kinds <= wanted else 1.0
        text = program.segment(node)
        if name == "not ":
            if isinstance(around, ast.Return | ast.Assign | ast.If | ast.While):
                yield from program.put(node, f"not {program.piece(node, 6)}", weight * share)
        else:
            yield from program.put(node, f"{name}({text})", weight * share * likely)
    if may_have_type(kinds, frozenset({"float", "int"})) and isinstance(
        around, ast.Return | ast.Assign | ast.Dict
    ):
        for digits in ("2", "1", "3"):
            yield from program.put(node, f"round({program.segment(node)}, {digits})", 0.9)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from program.put(
            node, f"-(-{program.piece(node.left, 13)} // {program.piece(node.right, 14)})", 0.8
        )


@operator(
    "a method call added to a value",
    0.3,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    most=1.3,
    before="x = f(a)",
    after="x = f(a.lower())",
)
def call_text_method(program: Program, node: ast.expr) -> Changes:
    if not (share := _place(program, node)):
        return
    kinds = guess_types(program, node)
    text = program.piece(node, ATOM)
    for call, wanted, weight in _ADDED_METHODS:
        if may_have_type(kinds, wanted):
            yield from program.put(node, f"{text}.{call}", weight * share * (1.3 if kinds else 0.6))


@operator(
    "a value limited with `min` or `max`",
    0.35,
    ast.Name,
    ast.BinOp,
    ast.Call,
    ast.Subscript,
    ast.IfExp,
    ast.Attribute,
    most=2.0,
    before="def f(a, b):\n    return a",
    after="def f(a, b):\n    return max(a, b)",
)
def clamp(program: Program, node: ast.expr) -> Changes:
    parent, _ = program.parents[node]
    if (
        not _place(program, node)
        or not may_have_type(guess_types(program, node), NUMBERS)
        or isinstance(parent, ast.BinOp | ast.Subscript)
    ):
        return
    text = program.segment(node)
    likely = 1.0 if isinstance(parent, ast.Assign | ast.Return | ast.keyword) else 0.7
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    best = program.segment(target) if target is not None and _kept_up(program, target) else ""
    if best and may_have_type(program.types(best, node), NUMBERS):
        for function in ("max", "min"):  # the best value so far
            yield from program.put(node, f"{function}({best}, {text})", 2.0)
    for name in ["0", *program.names(node)[:10], "1", "100"]:
        if name not in (text, best) and may_have_type(program.types(name, node), NUMBERS):
            for function in ("max", "min"):
                first, second = (name, text) if name.isdigit() else (text, name)
                yield from program.put(node, f"{function}({first}, {second})", likely)
    for name in program.names(node)[:10]:
        kinds = program.types(name, node)
        last = f"len({name}) - 1" if kinds & (COLLECTIONS - {"generator"}) else f"{name} - 1"
        if last.startswith("len") or kinds & frozenset({"int"}):
            yield from program.put(node, f"min({text}, {last})", likely)
    if isinstance(target, ast.Subscript | ast.Attribute):
        for function in ("max", "min"):
            yield from program.put(node, f"{function}({program.segment(target)}, {text})", likely)


def _kept_up(program: Program, target: ast.expr) -> bool:
    """Return whether a name gets its first value before the loop that assigns it again."""
    loops = [outer for outer in program.around(target) if isinstance(outer, ast.For | ast.While)]
    if not loops or not isinstance(target, ast.Name):
        return False
    first = loops[-1].lineno
    stores = (node for node in program.nodes if isinstance(node, ast.Name) and node.id == target.id)
    return any(
        isinstance(node.ctx, ast.Store) and node.lineno < first and program.home(node) is program.home(target)
        for node in stores
    )


@operator(
    "a default for `min` or `max` of an empty sequence",
    0.5,
    ast.Call,
    before="x = 1 + max(a)",
    after="x = 1 + max(a, default=0)",
)
def add_default(program: Program, node: ast.Call) -> Changes:
    name = program.segment(node.func)
    if (
        name not in ("max", "min")
        or len(node.args) != 1
        or any(keyword.arg == "default" for keyword in node.keywords)
    ):
        return
    argument = program.segment(node.args[0])
    if isinstance(node.args[0], ast.GeneratorExp) and not node.keywords:
        argument = f"({argument})"
    more = "".join(f", {program.segment(keyword)}" for keyword in node.keywords)
    for default in ("0", "None", "''", "[]", "0.0", "1", *program.hints.constants[:6]):
        yield from program.put(node, f"{name}({argument}{more}, default={default})", guard=True)
