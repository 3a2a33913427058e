"""Guards against `None`, zero, empty values, bad indexes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from healkit.contracts.healing import Edit
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site


def _guarded(
    site: Site, condition: str, what: str, more: list[Edit] | None = None, above: str = ""
) -> Iterator[Proposal]:
    """Insert `if condition: return …` above the failing line: what an example expects there, else None."""
    statement, source = site.statement, site.source
    if statement is None or site.function is None or isinstance(statement, ast.While):
        return
    demanded = site.demanded(condition) if site.function is site.entry else []
    lines = [above] if above else []
    for number, value in enumerate([v for v in demanded if _short(v)] or [None]):
        known = bool(demanded)
        text = [*lines, f"if {condition}:", f"{source.indent_unit}return {value!r}"]
        edits = source.insert_before(statement, *text)
        if edits:
            reason = f"Return {value!r} if {what}." if known else f"Return None if {what}."
            yield Proposal(
                reason, [*edits, *(more or [])], less=0.05 * number if known else 0.6, guard=not known
            )


def _short(value: Any) -> bool:
    return len(repr(value)) <= 200


def _free(site: Site, node: ast.AST) -> bool:
    """Return whether a node can be evaluated above its statement: no comprehension or lambda binds its names."""
    inner = {
        n.id
        for c in site.nodes(ast.comprehension, near=False)
        for n in ast.walk(c.target)
        if isinstance(n, ast.Name)
    }
    if isinstance(site.statement, ast.For):
        inner |= {n.id for n in ast.walk(site.statement.target) if isinstance(n, ast.Name)}
    inner |= {arg.arg for f in site.nodes(ast.Lambda, near=False) for arg in f.args.args}
    return not any(isinstance(n, ast.Name) and n.id in inner for n in ast.walk(node))


def _none(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    bases: list[ast.expr] = [n.value for n in site.nodes(ast.Attribute) if n.attr == (match["name"] or "")]
    if match["name"] is None:
        bases = [n.value for n in site.nodes(ast.Subscript)]
    for base in bases[:1]:
        text = site.source.segment(base)
        if not _free(site, base):
            return
        if isinstance(base, ast.Call) and (
            bool(base.args) or match["name"] in {"group", "groups", "start", "end", "span"}
        ):
            yield from _guarded(
                site,
                "found is None",
                f"`{text}` returns `None`",
                site.source.replace(base, "found"),
                f"found = {text}",
            )
        else:
            yield from _guarded(site, f"{text} is None", f"`{text}` is None")


def _zero(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    divisions = [n for n in site.nodes(ast.BinOp) if isinstance(n.op, ast.Div | ast.FloorDiv | ast.Mod)]
    for division in divisions[:1]:
        divisor = division.right
        text = site.source.segment(divisor)
        if not _free(site, divisor):
            continue
        condition = f"{site.source.atom(divisor)} == 0"
        if (
            isinstance(divisor, ast.Call)
            and getattr(divisor.func, "id", "") == "len"
            and len(divisor.args) == 1
        ):
            condition = f"not {site.source.segment(divisor.args[0])}"
        yield from _guarded(site, condition, f"`{text}` is 0")
        parent = site.source.parents[division]
        if site.function is not site.entry or not isinstance(parent, ast.Return):
            test = site.source.atom(divisor)
            edits = site.source.replace(division, f"({site.source.segment(division)} if {test} else 0)")
            yield Proposal(f"If `{text}` is 0, use 0 as the result.", edits, less=0.65, guard=True)


def _empty(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Return early, or give a default, where there is nothing to take the first, largest or mean of."""
    for call in site.nodes(ast.Call)[:3]:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if (
            name in {"max", "min", "next"}
            and len(call.args) == 1
            and not any(k.arg == "default" for k in call.keywords)
        ):
            end = site.source.span(call)[1] - 1
            returned = isinstance(site.source.parents[call], ast.Return) and site.function is site.entry
            held = site.demanded(f"not {site.source.segment(call.args[0])}") if returned else []
            returned = bool(held)
            for value in held or [None]:
                text = f", {value!r}" if name == "next" else f", default={value!r}"
                yield Proposal(f"If there are no values, use {value!r}.", [Edit(end, end, text)],
                          less=0.0 if returned else 0.6, guard=not returned)  # fmt: skip
        if name in {"max", "min", "mean", "median", "choice", "reduce", "pop", "stdev", "mode"}:
            given = call.args[-1] if call.args else getattr(call.func, "value", None)
            if isinstance(given, ast.Name | ast.Attribute | ast.Subscript) and _free(site, given):
                text = site.source.segment(given)
                yield from _guarded(site, f"not {text}", f"`{text}` is empty")


def _no_such_place(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for node in site.nodes(ast.Subscript)[:1]:
        base = site.source.atom(node.value)
        if isinstance(node.slice, ast.Slice) or not _free(site, node) or isinstance(node.value, ast.Call):
            continue
        if isinstance(node.slice, ast.Constant) and node.slice.value in {0, 1}:
            condition = f"not {base}" if node.slice.value == 0 else f"len({base}) < 2"
        elif isinstance(node.slice, ast.UnaryOp):
            condition = f"not {base}"
        else:
            condition = f"{site.source.segment(node.slice)} >= len({base})"
        yield from _guarded(site, condition, f"`{site.source.segment(node.value)}` has no such index")


_NONE = "import re\n\n\ndef tool(a):\n    match = re.search('b', a)\n{0}    return match.group()\n"
_MEAN = "def tool(a):\n{0}    return sum(a) / len(a)\n"


_LAST = "def tool(a):\n{0}    return a[0]\n"


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("AttributeError", "TypeError"),
        r"'NoneType' object (?:has no attribute '(?P<name>\w+)'|is not subscriptable)",
        fixes=(
            Fix(
                name="none",
                mistake="a search result of `None` that is used",
                priority=0.65,
                propose=_none,
                example=FixExample(
                    _NONE.format(""),
                    _NONE.format("    if match is None:\n        return 'none'\n"),
                    {"a": "c"},
                    right="none",
                ),
                lookalike=FixExample("def tool(a):\n    return None + a\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("ZeroDivisionError",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "zero_division",
                what="The code divided by zero.",
                why=(
                    "The divisor was 0 on this line. Common causes: the length of an empty list, a "
                    "counter that is still 0, or an initial value on the first iteration."
                ),
                hint="Which value in this line can be 0, and on which iteration?",
                fix="Handle that case before this line, or check whether the division is needed.",
                example="1 / 0",
            ),
        ),
        fixes=(
            Fix(
                name="zero",
                mistake="a division by 0",
                priority=0.65,
                propose=_zero,
                example=FixExample(
                    _MEAN.format(""), _MEAN.format("    if not a:\n        return 0\n"), {"a": []}, right=0
                ),
                lookalike=FixExample("def tool(a):\n    return divmod(1, a)\n", arguments={"a": 0}),
            ),
        ),
        kind="zero",
    ),
    FailurePattern(
        ("ValueError",),
        r"(?P<function>max|min)\(\) (?:arg is an empty sequence|iterable argument is empty)",
        explanations=(
            ExplanationText(
                "empty_extreme",
                what="`{function}` was called with an empty iterable.",
                why=(
                    "An empty iterable has no largest or smallest value. Often a filter has removed "
                    "everything."
                ),
                hint="Why is it empty here?",
                fix="Give a default: `{function}(…, default=0)`.",
                example="max([])",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError", "IndexError", "StatisticsError", "StopIteration", "TypeError"),
        r"empty|requires at least|no mode|^$|iterable argument|variance requires",
        fixes=(
            Fix(
                name="empty",
                mistake="the largest, first or mean value of an empty collection",
                priority=0.6,
                propose=_empty,
                example=FixExample(
                    "def tool(a):\n    return max(a)\n",
                    "def tool(a):\n    return max(a, default=0)\n",
                    {"a": []},
                    right=0,
                ),
                lookalike=FixExample("def tool(a):\n    raise ValueError('empty')\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("IndexError",),
        r"out of range",
        fixes=(
            Fix(
                name="no_such_place",
                mistake="an index that the list does not have",
                priority=0.6,
                propose=_no_such_place,
                example=FixExample(
                    _LAST.format(""),
                    _LAST.format("    if not a:\n        return 'x'\n"),
                    {"a": ""},
                    right="x",
                ),
                lookalike=FixExample("def tool(a):\n    return [b[0] for b in a]\n", arguments={"a": [[]]}),
            ),
        ),
    ),
)
