"""Operators between values that do not go together."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Literal

from healkit.core.contracts.patches import Edit, EditKind
from healkit.core.pysource.nodes import called_name, type_of, value_of
from healkit.parts.explain.site import Proposal, Site

_SIGNS: dict[str, tuple[type[ast.operator], ...]] = {
    "+": (ast.Add,), "-": (ast.Sub,), "*": (ast.Mult,), "/": (ast.Div,), "//": (ast.FloorDiv,), "%": (ast.Mod,),
    "** or pow()": (ast.Pow,), "^": (ast.BitXor,), "&": (ast.BitAnd,), "|": (ast.BitOr,),
}  # fmt: skip


_NUMBERS = {"int", "float"}
_COLLECTIONS = frozenset((
    "tuple", "set", "range", "dict_keys", "dict_values", "map", "filter", "generator", "zip",
))  # fmt: skip


#: Calls that order texts by their letters, in which `10` comes before `9`.
_BY_LETTERS = frozenset(("sort_values", "sort", "sorted", "max", "min", "nlargest", "nsmallest", "rank"))


def _operations(site: Site, sign: str) -> list[tuple[ast.expr | None, ast.expr]]:
    """Return both sides of each operation that may be meant, the marked one first; `+=` has no left side."""
    kinds = _SIGNS.get(sign.removesuffix("=") if sign not in _SIGNS else sign, ())
    if isinstance(site.statement, ast.AugAssign) and isinstance(site.statement.op, kinds):
        return [(None, site.statement.value)]
    nodes = [node for node in site.nodes(ast.BinOp) if isinstance(node.op, kinds)]
    if nodes and site.marked == site.source.span(nodes[0]):
        nodes = nodes[:1]
    return [(node.left, node.right) for node in nodes[:3]]


def _wrapped(
    site: Site, node: ast.expr | None, function: str, less: float = 0.0, kind: EditKind | Literal[""] = ""
) -> Iterator[Proposal]:
    if node is None or (function in _NUMBERS and isinstance(node, ast.BinOp)):
        return  # what an operator makes of texts is another text
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    if function in _NUMBERS and any(called_name(call) in _BY_LETTERS for call in calls):
        kind = "assumes"
    reason = f"Convert `{site.source.segment(node)}` with `{function}` first."
    yield Proposal(reason, site.source.wrap(node, f"{function}(", ")"), less, kind=kind)


def concatenated(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Convert the right side of `+` to the type of the text, list or tuple on the left."""
    kind, other_kind = match["kind"], match["other"]
    for left_operand, right in _operations(site, "+"):
        if type_of(right, site.values) == kind:
            continue
        text = site.source.segment(right)
        if kind == "str":
            # A text that holds a number may be meant as one, or the number as text.
            value = value_of(left_operand, site.values)
            is_known_text = isinstance(left_operand, ast.Constant | ast.JoinedStr | ast.BinOp) or (
                left_operand is not None and type_of(left_operand, site.values) == "str"
            )
            is_number = not isinstance(left_operand, ast.Constant) and (
                _is_number(value) or (value is None and not is_known_text)
            )
            if called_name(left_operand) in _JOINS:
                yield from _summed_column(site, left_operand)
            means: EditKind | Literal[""] = "assumes" if is_number and other_kind in _NUMBERS else ""
            yield from _wrapped(site, right, "str", less=0.2 if is_number else 0.0, kind=means)
            if (
                other_kind in _NUMBERS
                and left_operand is not None
                and not isinstance(left_operand, ast.Constant | ast.BinOp | ast.JoinedStr)
            ):
                yield from _wrapped(site, left_operand, other_kind, less=0.1, kind=means)
        elif kind == "list":
            if other_kind in _COLLECTIONS:
                yield from _wrapped(site, right, "list")
            else:
                yield Proposal(f"Put `{text}` into a list.", site.source.wrap(right, "[", "]"))
        elif kind == "tuple":
            if other_kind in {"list", "set", "range", "generator"}:
                yield from _wrapped(site, right, "tuple")
            else:
                yield Proposal(f"Put `{text}` into a tuple.", site.source.wrap(right, "(", ",)"))


def _is_number(value: object) -> bool:
    return isinstance(value, str) and value.strip().lstrip("+-").replace(".", "", 1).isdecimal()


def unsupported_operand(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    sign, kinds = match["operator"], (match["left"], match["right"])
    if sign == "+" and kinds == ("int", "str"):
        yield from _summed(site)
    for sides in _operations(site, sign):
        for side, kind, other_kind in zip(sides, kinds, kinds[::-1], strict=True):
            if kind == "str" and other_kind in _NUMBERS and called_name(side) in _JOINS:
                yield from _summed_column(site, side)
            elif kind == "str" and other_kind in _NUMBERS:
                first = "float" if other_kind == "float" else "int"
                yield from _wrapped(site, side, first)
                yield from _wrapped(site, side, "int" if first == "float" else "float", less=0.05)
            elif sign in {"+", "+="} and other_kind == "str" and kind in _NUMBERS:
                yield from _wrapped(site, side, "str", less=0.02)
            elif kind == "list" and other_kind in {"set", "dict_keys"} and sign in {"-", "&", "|"}:
                yield from _wrapped(site, side, "set")
            elif kind == "float" and other_kind.endswith("Decimal"):
                yield from _decimal(site, side)
            elif kind == "str" and other_kind == "str" and _JOINS & {*map(called_name, sides)}:
                column_edits = [
                    edit
                    for operand in sides
                    for proposal in _summed_column(site, operand)
                    for edit in proposal.edits
                ]
                if column_edits and side is sides[1]:
                    yield Proposal("Both are text: convert the columns first.", column_edits, kind="converts")
            elif kind == "str" and other_kind == "str" and sign in {"-", "*", "/"} and side is sides[1]:
                edits = [e for n in sides if n is not None for e in site.source.wrap(n, "float(", ")")]
                yield Proposal("Convert both strings to numbers first.", edits)


#: Calls that make one text of several, or choose one by its letters: the author did not mean a number.
_JOINS = frozenset(("sum", "join", "cumsum", "max", "min"))


def _summed_column(site: Site, call: ast.expr | None) -> Iterator[Proposal]:
    """Convert the texts of a column before they are added up or compared."""
    pandas = site.module_name("pandas")
    if (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and pandas
        and call.func.attr != "join"
    ):
        edits = site.source.wrap(call.func.value, f"{pandas}.to_numeric(", ")")
        reason = (
            f"`{call.func.attr}` works on text here: convert `{site.source.segment(call.func.value)}` first."
        )
        yield Proposal(reason, edits, kind="converts")


def _decimal(site: Site, side: ast.expr | None) -> Iterator[Proposal]:
    if side is not None:
        yield Proposal(
            "A float and a Decimal cannot be combined.", site.source.wrap(side, "Decimal(str(", "))")
        )


def _summed(site: Site) -> Iterator[Proposal]:
    """Join the texts that `sum` was given, or convert them to numbers."""
    for call in site.nodes(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == "sum" and len(call.args) == 1:
            items, argument = call.args[0], site.source.segment(call.args[0])
            for number, kind in enumerate(("int", "float")):
                edits = site.source.replace(items, f"map({kind}, {argument})")
                if isinstance(items, ast.GeneratorExp | ast.ListComp):
                    edits = site.source.wrap(items.elt, f"{kind}(", ")")
                yield Proposal(
                    "Convert the strings to numbers before you sum them.", edits, less=0.05 * number
                )
            edits = site.source.replace(call, f'"".join({argument})')
            yield Proposal("Join strings with `join`, not `sum`.", edits, less=0.1, kind="assumes")


def _other_sign(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the right Python operator: `**` for `^`, `|` for `+` of dicts and sets, `+` or `and` for `&`."""
    right = {"^": "**", "+": "|", "&": "and", "|": "or"}[match["operator"].removesuffix("=")]
    if match["operator"] == "&" and match["left"] == match["right"] == "str":
        right = "+"
    for left_operand, operand in _operations(site, match["operator"]):
        if left_operand is None:
            continue
        start, end = site.source.span(left_operand)[1], site.source.span(operand)[0]
        at = site.source.text.index(match["operator"], start, end)
        yield Proposal(f"For these values, use `{right}`.", [Edit(at, at + len(match["operator"]), right)])


def other_operator(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Try another operator if the types of the operands suggest one."""
    if _is_other(match):
        yield from _other_sign(site, match)


def _is_other(match: re.Match[str]) -> bool:
    """Return whether another operator is meant between values of these types."""
    kinds = {match["left"], match["right"]}
    if match["operator"] == "+":
        return kinds <= {"dict", "set"}
    return kinds <= {"float", "int"} if match["operator"] == "^" else kinds <= {"str", "bool"}


def compared(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Convert the text to a number, or the number to text, before the two are compared."""
    kinds = (match["left"], match["right"])
    if "str" not in kinds or not set(kinds) & _NUMBERS:
        return
    number = (set(kinds) & _NUMBERS).pop()
    for node in site.nodes(ast.Compare):
        sides = [node.left, *node.comparators]
        for left_operand, right in itertools.pairwise(sides):
            text, counterpart = (left_operand, right) if kinds[0] == "str" else (right, left_operand)
            if type_of(text, site.values) in _NUMBERS or type_of(counterpart, site.values) == "str":
                continue
            yield from _wrapped(site, text, number)
            yield from _wrapped(site, text, "float" if number == "int" else "int", less=0.05)
            if not isinstance(counterpart, ast.Constant):
                yield from _wrapped(site, counterpart, "str", less=0.15)
    for call in site.nodes(ast.Call):
        name = called_name(call)
        if name in {"min", "max"} and len(call.args) > 1:
            for argument in (
                argument for argument in call.args if _is_number(value_of(argument, site.values))
            ):
                yield from _wrapped(site, argument, number, less=0.05)
        elif name in {"sorted", "min", "max", "sort"} and not any(k.arg == "key" for k in call.keywords):
            for less, key in enumerate(("float", "str")):
                edits = site.source.add_argument(call, f"key={key}")
                yield Proposal(f"Compare all values as `{key}`.", edits, 0.2 + 0.1 * less, kind="assumes")


def joined(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for call in site.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "join" and len(call.args) == 1:
            argument = call.args[0]
            items = value_of(argument, site.values)
            if type(items) in (list, tuple) and all(isinstance(item, str) for item in items):
                continue  # it is another `join` of that line that fails
            if isinstance(argument, ast.GeneratorExp | ast.ListComp):
                yield Proposal("Only strings can be joined.", site.source.wrap(argument.elt, "str(", ")"))
            else:
                yield Proposal("Only strings can be joined.", site.source.wrap(argument, "map(str, ", ")"))


def repeated(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for left_operand, right in _operations(site, "*"):
        for side, counterpart in ((left_operand, right), (right, left_operand)):
            if side is None or type_of(counterpart or side, site.values) in _NUMBERS:
                continue
            if match["kind"] == "float":
                if (
                    counterpart is not None
                    and not isinstance(counterpart, ast.Constant)
                    and not type_of(counterpart, site.values)
                ):
                    yield from _wrapped(site, counterpart, "float")  # which fails if the text is not a number
                yield from _wrapped(site, side, "int", less=0.1, kind="assumes")
            elif match["kind"] == "str" and isinstance(side, ast.Name | ast.Subscript | ast.Call):
                if counterpart is not None and type_of(counterpart, site.values) == "str":
                    edits = [
                        edit
                        for operand in (side, counterpart)
                        for edit in site.source.wrap(operand, "int(", ")")
                    ]
                    yield Proposal("Convert both strings to numbers first.", edits)
                else:
                    yield from _wrapped(site, side, "int")
        if match["kind"] == "float":
            for side in (left_operand, right):
                if side is not None and type_of(side, site.values) == "str":
                    yield from _wrapped(site, side, "float")
