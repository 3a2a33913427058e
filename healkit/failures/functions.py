"""Functions that are not called, and calls of non-functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.failures.attributes import TYPES
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site
from healkit.failures.unbound import renamed_variable
from healkit.pysource.scope import BUILTINS


def _uncalled(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Add the missing parentheses of a call: `text.split[0]`, `for key in d.items:`."""
    source = site.source
    methods = {name for kind in TYPES.values() for name in dir(kind) if not name.startswith("_")}
    own = {n.name: len(n.args.args) for n in ast.walk(source.tree) if isinstance(n, ast.FunctionDef)}
    named: list[ast.Attribute | ast.Name] = [*site.nodes(ast.Attribute), *site.nodes(ast.Name)]
    for node in named:
        called = source.parents[node]
        if isinstance(called, ast.Call) and called.func is node:
            continue
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        if isinstance(node, ast.Attribute) and (name in methods or own.get(name) == 1):
            yield Proposal(f"`.{name}` is not called: add parentheses.", source.wrap(node, "", "()"))
        elif isinstance(called, ast.Subscript) and called.value is node and (name in own or name in BUILTINS):
            start, end = source.span(node)
            inside = source.segment(called)[end - start :].strip()[1:-1]
            yield Proposal(f"`{name}` is a function; call it with parentheses.",
                      source.replace(called, f"{name}({inside})"))  # fmt: skip
        elif isinstance(node, ast.Name) and own.get(name) == 0:
            yield Proposal(f"`{name}` is not called: add parentheses.", source.wrap(node, "", "()"))


def _no_function(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Replace a call of what is not a function: index it, only read it, or rename what hides the function."""
    source, kind = site.source, match["kind"]
    for call in site.nodes(ast.Call)[:3]:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in BUILTINS:
            yield from renamed_variable(site, name)
        if len(call.args) == 1 and kind in {"list", "dict", "str", "tuple"} and not call.keywords:
            text = f"{source.segment(call.func)}[{source.segment(call.args[0])}]"
            yield Proposal(
                f"Use square brackets to look something up in a {kind}.", source.replace(call, text), 0.05
            )
        if not call.args and not call.keywords:
            yield Proposal(
                f"`{source.segment(call.func)}` is a {kind}, not a function.",
                source.replace(call, source.segment(call.func)),
            )
        if isinstance(call.func, ast.Constant) and kind in {"int", "float"}:
            start = source.span(call.func)[1]
            text = f"{source.segment(call.func)} * {source.text[start : source.span(call)[1]].strip()}"
            yield Proposal(
                "A number before a parenthesis needs `*` to multiply.",
                source.replace(call, text),
            )


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError", "AttributeError"),
        r"'(?:builtin_function_or_method|method|method_descriptor|function|type)'",
        fixes=(
            Fix(
                name="uncalled",
                mistake="a function or a method that is named but not called",
                priority=0.85,
                propose=_uncalled,
                example=FixExample(
                    "def tool(a):\n    return [k for k, v in a.items if v]\n",
                    "def tool(a):\n    return [k for k, v in a.items() if v]\n",
                    {"a": {"b": 1}},
                ),
                lookalike=FixExample("def tool(a):\n    return (lambda b: b) + a\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>[\w.]+)' object is not callable",
        explanations=(
            ExplanationText(
                "not_callable_shadow",
                what="A `{kind}` is called as if it were a function.",
                why=(
                    "A variable has taken the name of a function (`list = …`, `sum = …`), an operator "
                    "or comma is missing before the parenthesis, or you meant square brackets."
                ),
                hint="What is the value of the name before the parenthesis on this line?",
                fix=(
                    "Rename the variable (`del list` restores the built-in), or write `[…]` to look "
                    "something up."
                ),
                only=r"'(?:list|dict|str|int|float|set|tuple|bool|DataFrame|Series|module)' object",
                example="list = [1]\nlist('ab')",
            ),
            ExplanationText(
                "not_callable",
                what="A `{kind}` is called, but it is not callable.",
                why="The value before the parentheses is not a function: often it is the result of one.",
                hint="Is there one pair of parentheses too many?",
                fix="Remove the parentheses, or call the function itself.",
                example="None()",
            ),
        ),
        fixes=(
            Fix(
                name="no_function",
                mistake="a call of a value that is not a function",
                priority=0.85,
                propose=_no_function,
                example=FixExample(
                    "def tool(a, b=list) -> list:\n    list = sorted(a)\n    return list(dict.fromkeys(list))\n",
                    "def tool(a, b=list) -> list:\n    list_value = sorted(a)\n    return list(dict.fromkeys(list_value))\n",
                    {"a": ["b", "b"]},
                ),
                lookalike=FixExample("def tool(a, b):\n    return a(b, b)\n", arguments={"a": 1, "b": 2}),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>builtin_function_or_method|method|function|type)' object is not subscriptable",
        explanations=(
            ExplanationText(
                "method_subscript",
                what="Square brackets follow a function.",
                why="Call a function with parentheses; square brackets look something up.",
                hint="Do you want to call the function, or to look something up in its result?",
                fix="Write `(…)`, or put the square brackets after the call.",
                example="'text'.split[0]",
            ),
        ),
    ),
)
