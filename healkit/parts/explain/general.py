"""Guards against empty values, and rows for any exception."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import called_name
from healkit.parts.explain.site import Proposal, Site


def _guarded(
    site: Site, condition: str, what: str, more: list[Edit] | None = None, above: str = ""
) -> Iterator[Proposal]:
    """Insert `if condition: return …` above the failing line: the result that an example expects, otherwise None."""
    statement, source = site.statement, site.source
    if statement is None or site.function is None or isinstance(statement, ast.While):
        return
    demanded = site.demanded(condition) if site.function is site.entry else []
    lines = [above] if above else []
    for number, value in enumerate([v for v in demanded if len(repr(v)) <= 200] or [None]):
        is_demanded = bool(demanded)
        text = [*lines, f"if {condition}:", f"{source.indent_unit}return {value!r}"]
        edits = source.insert_before(statement, *text)
        if edits:
            reason = f"Return {value!r} if {what}." if is_demanded else f"Return None if {what}."
            yield Proposal(
                reason,
                [*edits, *(more or [])],
                less=0.05 * number if is_demanded else 0.6,
                guard=not is_demanded,
            )


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


def none(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def zero(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def empty(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Return early, or give a default, if a collection is empty."""
    for call in site.nodes(ast.Call)[:3]:
        name = called_name(call)
        if (
            name in {"max", "min", "next"}
            and len(call.args) == 1
            and not any(k.arg == "default" for k in call.keywords)
        ):
            returned = isinstance(site.source.parents[call], ast.Return) and site.function is site.entry
            defaults = site.demanded(f"not {site.source.segment(call.args[0])}") if returned else []
            returned = bool(defaults)
            for value in defaults or [None]:
                text = repr(value) if name == "next" else f"default={value!r}"
                edits = site.source.add_argument(call, text)
                yield Proposal(f"If there are no values, use {value!r}.", edits,
                          less=0.0 if returned else 0.6, guard=not returned)  # fmt: skip
        if name in {"max", "min", "mean", "median", "choice", "reduce", "pop", "stdev", "mode"}:
            collection = call.args[-1] if call.args else getattr(call.func, "value", None)
            if isinstance(collection, ast.Name | ast.Attribute | ast.Subscript) and _free(site, collection):
                text = site.source.segment(collection)
                yield from _guarded(site, f"not {text}", f"`{text}` is empty")


def no_such_place(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


# Exceptions whose type says enough, and the rows for any


def raised_text(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    statement = site.statement
    if isinstance(statement, ast.Raise) and isinstance(
        statement.exc, ast.Constant | ast.JoinedStr | ast.BinOp
    ):
        yield Proposal("Only exceptions can be raised.", site.source.wrap(statement.exc, "ValueError(", ")"))


def unused_value(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Delete the failing line if nothing reads the name that it gives a value."""
    statement = site.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or any(isinstance(n, ast.Call) for n in ast.walk(statement.value)):
        return
    reads = [
        n
        for n in ast.walk(site.scope)
        if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)
    ]
    if not reads and site.function is not None:
        yield Proposal(f"`{target.id}` is never used, so the line is removed.", site.source.delete(statement))
