"""`None` where a value was expected."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import Function, called_name, own_nodes, parameters
from healkit.parts.explain.site import Proposal, Site

#: Methods that change their object and return None → an expression of the changed value, if there is one.
_IN_PLACE = {
    "sort": "sorted({o}{a})", "reverse": "{o}[::-1]", "append": "[*{o}, {0}]", "extend": "[*{o}, *{0}]", "insert": "",
    "add": "{{*{o}, {0}}}", "update": "", "remove": "", "clear": "", "discard": "",
}  # fmt: skip


def in_place(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the changed object where the value of an in-place method is used: `ranked = scores.sort()`."""
    source = site.source
    for call in site.body_nodes(ast.Call):
        parent = source.parents[call]
        func = call.func
        if (
            not isinstance(func, ast.Attribute)
            or func.attr not in _IN_PLACE
            or isinstance(parent, ast.Expr | ast.Await)
        ):
            continue
        base = source.segment(func.value)
        if (
            isinstance(parent, ast.Assign)
            and len(parent.targets) == 1
            and source.segment(parent.targets[0]) == base
        ):
            yield Proposal(f"`.{func.attr}` changes `{base}` in place and returns `None`, so the assignment is removed.",
                      source.replace(parent, source.segment(call)))  # fmt: skip
            continue
        form = _IN_PLACE[func.attr]
        if not form or ("{0}" in form and len(call.args) != 1):
            continue
        argument_text = "".join(f", {source.segment(argument)}" for argument in [*call.args, *call.keywords])
        text = form.format(
            *[source.segment(argument) for argument in call.args], o=source.atom(func.value), a=argument_text
        )
        yield Proposal(
            f"`.{func.attr}` returns `None`; use `{text}` for the changed value.", source.replace(call, text)
        )


def assigned_in_place(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Leave `inplace=True` out of a call whose value is used: with it, that is `None`."""
    for call in site.body_nodes(ast.Call):
        for keyword in call.keywords:
            is_set = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg == "inplace" and is_set and not isinstance(site.source.parents[call], ast.Expr):
                reason = f"With `inplace=True`, `{called_name(call)}` returns `None`."
                yield Proposal(reason, site.source.remove_argument(call, keyword))


def shuffled(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    source = site.source
    for node in site.body_nodes(ast.Assign):
        call = node.value
        if (
            not isinstance(call, ast.Call)
            or not source.segment(call.func).endswith("shuffle")
            or not call.args
        ):
            continue
        target, argument = source.segment(node.targets[0]), source.segment(call.args[0])
        why = "`shuffle` changes the list in place and returns `None`."
        if target == argument:
            yield Proposal(why, source.replace(node, source.segment(call)))
        else:
            edits = source.insert_before(node, f"{target} = list({argument})")
            edits += [
                Edit(source.span(node)[0], source.span(call)[0], ""),
                *source.replace(call.args[0], target),
            ]
            yield Proposal(why, edits)


def _returns(function: Function) -> list[ast.Return]:
    return [n for n in own_nodes(function) if isinstance(n, ast.Return) and n.value is not None]


def _suspects(site: Site) -> list[Function]:
    """Return the own functions whose missing value could have failed."""
    called = {n.func.id for n in site.body_nodes(ast.Call) if isinstance(n.func, ast.Name)}
    called |= {n.func.attr for n in site.body_nodes(ast.Call) if isinstance(n.func, ast.Attribute)}
    if site.failure is None:
        called |= {site.entry.name} if site.entry else set()
    functions = [n for n in ast.walk(site.source.tree) if isinstance(n, Function)]
    return [f for f in functions if f.name in called and f.name != "__init__"]


def no_return(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    if site.failure is None and not (site.expected and site.expected[0] is not None):
        return
    for function in _suspects(site):
        if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own_nodes(function)):
            continue
        yield from _with_return(site, function, function.body[-1])


def _with_return(site: Site, function: Function, last: ast.stmt) -> Iterator[Proposal]:
    """Add a `return` of the last statement's value, or of a name that was built up."""
    source, why = site.source, f"`{function.name}` ends without a `return`"
    if isinstance(last, ast.If) and last.body:
        for branch in (last.body[-1], *(last.orelse[-1:])):
            yield from _with_return(site, function, branch)
        return
    if _returns(function) and not isinstance(last, ast.Expr):
        return
    match last:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=args)) if _only_tells(args):
            for name in _assigned(function)[-1:]:
                yield Proposal(
                    f"`{function.name}` prints `{name}` but does not return it.",
                    source.insert_after(last, f"return {name}"),
                )
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[value], keywords=[])):
            text = source.segment(value)
            yield Proposal(
                f"`{function.name}` prints its value but does not return it.",
                source.replace(last, f"return {text}"),
            )
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr=attr))) if attr in _IN_PLACE:
            text = source.segment(base)
            yield Proposal(f"{why}: return `{text}`.", source.insert_after(last, f"return {text}"))
        case ast.Expr(value=value) if not isinstance(value, ast.Constant):
            yield Proposal(f"{why}: return the last expression.", source.wrap(last, "return ", ""))
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            yield Proposal(f"{why}: return `{name}`.", source.insert_after(last, f"return {name}"))
        case ast.For() | ast.While() | ast.With() | ast.Assign():
            for number, name in enumerate(_built(function, last)):
                edits = source.insert_after(last, f"return {name}")
                yield Proposal(f"{why}: return `{name}`.", edits, less=0.05 * number)


def _only_tells(args: Sequence[ast.expr]) -> bool:
    """Return whether a `print` prints more than one value, so that its text is not a usable result."""
    return len(args) > 1 or any(isinstance(argument, ast.JoinedStr | ast.Constant) for argument in args)


def _assigned(function: Function) -> list[str]:
    """Return the names that the function's own statements assign, in order."""
    targets = (target for node in function.body if isinstance(node, ast.Assign) for target in node.targets)
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _built(function: Function, last: ast.stmt) -> list[str]:
    """Return the names that the function assigned and the last block changed, in the order of assignment."""
    parameter_names = {arg.arg for arg in parameters(function)}
    touched = {n.id for n in ast.walk(last) if isinstance(n, ast.Name)}
    return [
        name for name in dict.fromkeys(_assigned(function)) if name in touched and name not in parameter_names
    ][:2]


# The same for a value that a tool returns.
in_place_returned, nothing_returned = in_place, no_return
