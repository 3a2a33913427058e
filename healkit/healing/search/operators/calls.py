"""Edits of what a call is given and of what it is put around."""

from __future__ import annotations

import ast

from healkit.contracts.healing import Edit
from healkit.healing.search.kinds import guess
from healkit.healing.search.operators.table import Changes, operator
from healkit.healing.search.program import Change, Program
from healkit.healing.search.splices import TEST


@operator("two arguments swapped", 0.9, ast.Call, before="x = f(a, b)", after="x = f(b, a)")
def swapped(program: Program, node: ast.Call) -> Changes:
    args = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
    commutes = isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
    for first in range(len(args)):
        for second in range(first + 1, len(args)):
            one, other = args[first], args[second]
            if commutes or program.segment(one) == program.segment(other):
                continue
            yield Change(
                (
                    Edit(*program.source.span(one), program.piece(other, TEST)),
                    Edit(*program.source.span(other), program.piece(one, TEST)),
                ),
                1.0 if second == first + 1 else 0.8,
            )


def _without(program: Program, parts: list[ast.expr] | list[ast.AST], leave: int) -> Edit:
    """The edit that takes one of a comma-separated list out, with its comma."""
    start, stop = program.source.span(parts[leave])
    if leave + 1 < len(parts):
        return Edit(start, program.source.span(parts[leave + 1])[0], "")
    if leave:
        return Edit(program.source.span(parts[leave - 1])[1], stop, "")
    return Edit(start, stop, "")


@operator("an argument dropped", 0.5, ast.Call, before="x = f(a, b)", after="x = f(a)")
def dropped(program: Program, node: ast.Call) -> Changes:
    parts: list[ast.AST] = [*node.args, *node.keywords]
    if any(program.source.in_parentheses(part) and len(parts) > 1 for part in node.args):
        return
    for leave in range(len(parts)):
        yield Change((_without(program, parts, leave),), 1.0)


@operator(
    "an argument added",
    0.25,
    ast.Call,
    most=1.6,
    before="def f(a, b):\n    return f(a)",
    after="def f(a, b):\n    return f(a, b)",
)
def added(program: Program, node: ast.Call) -> Changes:
    if node.keywords or any(isinstance(arg, ast.GeneratorExp | ast.Starred) for arg in node.args):
        return
    name = program.segment(node.func)
    own = program.defined.get(name.rpartition(".")[2])
    room = own is not None and len(node.args) < len(own.args.args)
    if own is not None and not room:
        return
    extra = [*program.names(node)[:12], "1", "2", "0", "-1"]
    weight = 1.6 if room else 0.8
    if name == "range":
        yield from _more_range(program, node)
    elif (
        name == "round"
        or name.endswith((".split", ".get", ".pop", ".find"))
        or room
        or name in ("max", "min", "sum", "open")
    ):
        for text in extra:
            if node.args:
                at = program.source.span(node.args[-1])[1]
                yield Change((Edit(at, at, f", {text}"),), weight)
                at = program.source.span(node.args[0])[0]
                yield Change((Edit(at, at, f"{text}, "),), weight * 0.6)
            else:
                end = program.source.span(node)[1] - 1
                yield Change((Edit(end, end, text),), weight)


def _more_range(program: Program, node: ast.Call) -> Changes:
    texts = [program.segment(arg) for arg in node.args]
    span = program.source.span(node)
    if len(texts) == 1:
        for low in ("1", "2", *program.names(node)[:8]):
            yield Change((Edit(*span, f"range({low}, {texts[0]})"),), 1.6)
        yield Change((Edit(*span, f"range(1, {texts[0]} + 1)"),), 1.6)
        yield Change((Edit(*span, f"range({texts[0]} - 1, -1, -1)"),), 1.4)
        yield Change((Edit(*span, f"range({texts[0]}, 0, -1)"),), 1.2)
    elif len(texts) == 2:
        for step in ("2", "-1", *program.names(node)[:8]):
            yield Change((Edit(*span, f"range({texts[0]}, {texts[1]}, {step})"),), 1.4)
        yield Change((Edit(*span, f"range({texts[0]} + 1, {texts[1]} + 1)"),), 1.2)


@operator("a call taken off its argument", 0.7, ast.Call, before="x = len(a)", after="x = a")
def unwrapped(program: Program, node: ast.Call) -> Changes:
    if len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
        yield from program.put(node, program.segment(node.args[0]))
    elif node.args and not isinstance(node.args[0], ast.Starred):
        for arg in node.args:
            if not isinstance(arg, ast.Starred):
                yield from program.put(node, program.segment(arg), 0.6)


@operator("a method taken off its object", 0.5, ast.Call, before="x = a.strip()", after="x = a")
def off_object(program: Program, node: ast.Call) -> Changes:
    if isinstance(node.func, ast.Attribute) and not isinstance(program.parent(node), ast.Expr):
        yield from program.put(node, program.segment(node.func.value))


@operator(
    "sorted the other way round", 0.5, ast.Call, before="x = sorted(a)", after="x = sorted(a, reverse=True)"
)
def reverse(program: Program, node: ast.Call) -> Changes:
    name = program.segment(node.func)
    if name != "sorted" and not name.endswith(".sort"):
        return
    for keyword in node.keywords:
        if keyword.arg == "reverse":
            return
    yield from _with_keyword(program, node, "reverse=True", 1.0)


def _with_keyword(program: Program, node: ast.Call, text: str, weight: float) -> Changes:
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    if len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.GeneratorExp):
        start, end = program.source.span(node.args[0])
        inner = program.text[start:end]
        yield Change((Edit(start, end, f"{inner}, {text}"),), weight)
        return
    at = program.source.span(parts[-1])[1] if parts else program.source.span(node)[1] - 1
    if not program.text[at : program.source.span(node)[1]].lstrip().startswith((")", ",")):
        return
    yield Change((Edit(at, at, f", {text}" if parts else text),), weight)


_KEYS = (
    "len", "lambda item: item[1]", "lambda item: item[0]", "lambda item: -item[1]", "str", "int", "str.lower", "abs", "sum",
    "lambda item: (-item[1], item[0])", "lambda item: (item[1], item[0])", "lambda item: (len(item), item)",
    "lambda item: (-len(item), item)", "lambda item: -item", "lambda item: item[-1]", "lambda item: (item[0], -item[1])", "float",
)  # fmt: skip


@operator("a key to compare by", 0.4, ast.Call, before="x = sorted(a)", after="x = sorted(a, key=len)")
def keyed(program: Program, node: ast.Call) -> Changes:
    name = program.segment(node.func)
    if name not in ("sorted", "min", "max") and not name.endswith(".sort"):
        return
    old = next((keyword.value for keyword in node.keywords if keyword.arg == "key"), None)
    texts = [*_KEYS, *_found_keys(program, node)]
    for text in texts:
        if old is not None:
            yield from program.put(old, text, 0.9)
        elif len(node.args) <= 1:
            yield from _with_keyword(program, node, f"key={text}", 1.0)
            if name not in ("min", "max") and not node.keywords and text[0] != "l":
                yield from _with_keyword(program, node, f"key={text}, reverse=True", 0.6)
        else:
            yield from _with_keyword(program, node, f"key={text}", 0.6)


def _found_keys(program: Program, node: ast.Call) -> list[str]:
    """Keys made of what the program looks things up by: `d.get`, `item["name"]`, `item.name`."""
    found: dict[str, None] = {}
    for other in program.nodes:
        if (
            isinstance(other, ast.Subscript)
            and isinstance(other.slice, ast.Constant)
            and isinstance(other.slice.value, str)
        ):
            found[f"lambda item: item[{program.segment(other.slice)}]"] = None
            found[f"lambda item: -item[{program.segment(other.slice)}]"] = None
    for text in program.hints.constants:
        if text[:1] in "'\"" and text[1:-1].isidentifier():
            found[f"lambda item: item[{text}]"] = None
    for name in program.names(node)[:10]:
        if program.types(name, node) & {"dict", "Counter", "defaultdict"}:
            found[f"{name}.get"] = None
            found[f"lambda item: (-{name}[item], item)"] = None
    for name, function in program.defined.items():
        if len(function.args.args) == 1 and "self" not in (arg.arg for arg in function.args.args):
            found[name] = None
    return list(found)[:16]


@operator("what a key gives", 0.6, ast.Lambda, before="k = lambda p: p[1]", after="k = lambda p: (p[1], p)")
def key_body(program: Program, node: ast.Lambda) -> Changes:
    if len(node.args.args) != 1:
        return
    name, body = node.args.args[0].arg, program.segment(node.body)
    if isinstance(node.body, ast.Tuple):
        return
    for text in (
        f"({body}, {name})",
        f"(-{body}, {name})",
        f"({name}, {body})",
        f"({body}, {name}[0])",
        f"(-{body}, {name}[0])",
        f"{name}[0]",
        f"{name}[1]",
        f"{body}[0]",
        f"{body}[1]",
        f"{body}.lower()",
        f"len({body})",
        f"({body}, {name}[1])",
        f"(-{body}, {name}[1])",
        f"int({body})",
    ):
        yield from program.put(node.body, text, 0.8 if "[1])" not in text else 0.6)


@operator(
    "a function called, or named only",
    0.5,
    ast.Call,
    ast.Name,
    ast.Attribute,
    before="x = a.lower\n",
    after="x = a.lower()\n",
)
def called(program: Program, node: ast.expr) -> Changes:
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
    own = isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and node.id in program.defined)
    if own and not guess(program, node):
        yield from program.put(node, f"{program.segment(node)}()", 1.0)
