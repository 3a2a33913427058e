"""Classic mistakes that raise no exception."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import Function, first_statement, own_nodes, parameters
from healkit.parts.explain.site import Proposal, Site
from healkit.parts.explain.source import Source

_TEXT_METHODS = frozenset(name for name in dir(str) if not name.startswith(("_", "is")))


def identity(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for node in site.all(ast.Compare):
        right = node.comparators[0]
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Is | ast.IsNot):
            continue
        if isinstance(right, ast.Constant) and (right.value is None or isinstance(right.value, bool)):
            continue
        start, end = site.source.span(node.left)[1], site.source.span(right)[0]
        sign = "==" if isinstance(node.ops[0], ast.Is) else "!="
        yield Proposal(
            f"`is` tests for the same object; `{sign}` compares values.", [Edit(start, end, f" {sign} ")]
        )


def thrown_away(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Keep the value of `text.replace(…)` in a line of its own: text never changes."""
    edits: list[Edit] = []
    for node in site.all(ast.Expr):
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in _TEXT_METHODS - {
                "index",
                "count",
                "find",
                "format",
            }:
                edits += site.source.wrap(node, f"{name} = ", "")
            case ast.Call(func=ast.Name(id="sorted" | "reversed" as function), args=[ast.Name(id=name), *_]):
                text = site.source.segment(node)
                edits += site.source.replace(
                    node, f"{name} = {text if function == 'sorted' else f'list({text})'}"
                )
    if edits:
        yield Proposal("Assign the result; it was discarded.", edits)


def float_equality(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    values = str([check.arguments for check in site.inputs])
    if (
        not re.search(r"\d\.\d", values)
        and "float" not in site.source.text
        and not re.search(r"\d\.\d|/", site.source.text)
    ):
        return
    for node in site.all(ast.Compare):
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            continue
        left_text, right = site.source.segment(node.left), site.source.segment(node.comparators[0])
        if any(
            isinstance(side, ast.Constant) and not isinstance(side.value, float)
            for side in (node.left, node.comparators[0])
        ):
            continue
        sign = "" if isinstance(node.ops[0], ast.Eq) else "not "
        text = f"{sign}math.isclose({left_text}, {right}, abs_tol=1e-9)"
        edits = site.source.replace(node, text if not sign else f"({text})")
        edits += (
            []
            if re.search(r"^import math$", site.source.text, re.MULTILINE)
            else site.add_import("import math")
        )
        yield Proposal("Compare floats with a tolerance.", edits)


def any_of(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Compare with each value: `x == "a" or "b"` is always true."""
    for node in site.all(ast.BoolOp):
        first, rest = node.values[0], node.values[1:]
        if not (
            isinstance(first, ast.Compare)
            and len(first.ops) == 1
            and all(isinstance(v, ast.Constant) for v in rest)
        ):
            continue
        if isinstance(first.ops[0], ast.Eq | ast.NotEq):
            texts = ", ".join(site.source.segment(value) for value in (first.comparators[0], *rest))
            word = "in" if isinstance(first.ops[0], ast.Eq) else "not in"
            text = f"{site.source.segment(first.left)} {word} ({texts})"
            yield Proposal("Compare with each of the values.", site.source.replace(node, text))


def too_early(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Move a `return` at the end of a loop's body behind the loop."""
    source = site.source
    why = "The loop runs to its end before it returns."
    loops: list[ast.For | ast.While] = [*site.all(ast.For), *site.all(ast.While)]
    for loop in loops:
        last = loop.body[-1]
        followed = _followed(source.parents[loop], loop)
        owner = _with_else(last)
        if isinstance(last, ast.Return) and len(loop.body) > 1 and source.starts_line(last):
            at, indent = source.line_start(last.lineno), source.indent(loop.lineno)
            if last.end_lineno == last.lineno:
                yield Proposal(why, [Edit(at, at + len(source.indent(last.lineno)), indent)])
            if followed:
                yield Proposal(why, source.delete(last))
        elif owner is not None:
            text = (
                ""
                if followed
                else f"{source.indent(loop.lineno)}{source.segment(owner.orelse[0])}{source.newline}"
            )
            yield Proposal(why, [_without_else(site, owner, text)])


def first_decides(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """End the loop only for the bad case: `if good: return True`, else `return False`."""
    source = site.source
    loops: list[ast.For | ast.While] = [*site.all(ast.For), *site.all(ast.While)]
    for loop in loops:
        last = loop.body[-1]
        owner = _with_else(last)
        test = owner or (loop.body[-2] if len(loop.body) > 1 and isinstance(last, ast.Return) else None)
        if not isinstance(test, ast.If) or len(test.body) != 1 or not isinstance(test.body[0], ast.Return):
            continue
        if owner is None and test.orelse:
            continue
        alternative = owner.orelse[0] if owner else last
        after = f"{source.indent(loop.lineno)}{source.segment(test.body[0])}{source.newline}"
        after = "" if _followed(source.parents[loop], loop) else after
        edits = [
            *source.replace(test.test, _negated(site, test.test)),
            *source.replace(test.body[0], source.segment(alternative)),
        ]
        if owner is not None:
            edits.append(_without_else(site, owner, after))
        elif source.starts_line(last):
            end = source.line_start((last.end_lineno or 0) + 1)
            edits.append(Edit(source.line_start(last.lineno), end, after))
        yield Proposal("The loop finishes all iterations before it returns.", edits)


def _without_else(site: Site, owner: ast.If, text: str) -> Edit:
    """Replace an `else` by text below the `if`."""
    start = site.source.line_start((owner.body[-1].end_lineno or 0) + 1)
    return Edit(start, site.source.line_start((owner.end_lineno or 0) + 1), text)


_OPPOSITES: dict[type[ast.cmpop], str] = {
    ast.Gt: "<=", ast.GtE: "<", ast.Lt: ">=", ast.LtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip


def _negated(site: Site, test: ast.expr) -> str:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return site.source.segment(operand)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return f"{site.source.segment(left)} {_OPPOSITES[type(op)]} {site.source.segment(right)}"
    return f"not {site.source.atom(test)}"


def _with_else(node: ast.stmt) -> ast.If | None:
    """Return an `if` whose `else` holds one `return` and nothing else."""
    if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.Return):
        return node
    return None


def _followed(parent: ast.AST, loop: ast.stmt) -> bool:
    """Return whether a `return` comes right after the loop."""
    body = getattr(parent, "body", [])
    place = body.index(loop) + 1 if loop in body else len(body)
    return place < len(body) and isinstance(body[place], ast.Return)


def no_f(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Add the `f` to a string with `{name}` in it."""
    edits: list[Edit] = []
    variables = {
        arg.arg for f in ast.walk(site.source.tree) if isinstance(f, Function) for arg in parameters(f)
    }
    variables |= {
        n.id for n in own_nodes(site.scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for node in site.all(ast.Constant):
        parent = site.source.parents[node]
        if not isinstance(node.value, str) or isinstance(parent, ast.Attribute | ast.Expr | ast.JoinedStr):
            continue
        named = re.findall(r"\{(\w+)[^{}]*\}", node.value)
        if named and set(named) <= variables and site.source.segment(node)[0] in "'\"":
            at = site.source.span(node)[0]
            edits.append(Edit(at, at, "f"))
    if edits:
        yield Proposal("Names in braces are replaced only in an f-string.", edits)


def unequal(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Store with one `=`, add with `+=`: `total == 1` only compares, `=+` only assigns."""
    for node in ast.walk(site.source.tree):
        match node:
            case ast.Expr() if edits := stored(site.source, node):
                yield Proposal("`=` assigns; `==` compares.", edits)
            case ast.Assign(
                targets=[target], value=ast.UnaryOp(op=ast.UAdd() | ast.USub() as op, operand=operand)
            ):
                start, end = site.source.span(target)[1], site.source.span(operand)[0]
                sign = "+" if isinstance(op, ast.UAdd) else "-"
                if f"={sign}" in site.source.text[start:end]:
                    yield Proposal(
                        f"`={sign}` assigns a signed value; `{sign}=` updates the variable.",
                        [Edit(start, end, f" {sign}= ")],
                    )


def stored(source: Source, statement: ast.Expr) -> list[Edit]:
    """Make an assignment of `total == 1` in a line of its own; no edits for any other statement."""
    match statement.value:
        case ast.Compare(
            left=ast.Name() | ast.Attribute() | ast.Subscript() as left, ops=[ast.Eq()], comparators=[right]
        ):
            at = source.text.index("==", source.span(left)[1], source.span(right)[0])
            return [Edit(at, at + 2, "=")]
    return []


# Mutable values that are shared by mistake


def shared_default(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Create the default in each call: a list as a default is created only once."""
    edits: list[Edit] = []
    for function in ast.walk(site.source.tree):
        if not isinstance(function, Function):
            continue
        named = [*function.args.posonlyargs, *function.args.args]
        pairs = list(
            zip(named[len(named) - len(function.args.defaults) :], function.args.defaults, strict=True)
        )
        pairs += [
            (a, d) for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d
        ]
        for arg, default in pairs:
            if not isinstance(default, ast.List | ast.Dict | ast.Set) and site.source.segment(
                default
            ) not in {"list()", "dict()", "set()"}:
                continue
            unit = site.source.indent_unit
            above = site.source.insert_before(
                first_statement(function),
                f"if {arg.arg} is None:",
                f"{unit}{arg.arg} = {site.source.segment(default)}",
            )
            edits += [*site.source.replace(default, "None"), *above] if above else []
    if edits:
        yield Proposal("Create the mutable default value in every call.", edits)


def skipping(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Loop over a copy of the list that the loop changes, which would skip items."""
    for loop in site.all(ast.For):
        if not isinstance(loop.iter, ast.Name):
            continue
        name = loop.iter.id
        for node in ast.walk(loop):
            match node:
                case (
                    ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr="remove" | "pop" | "insert"))
                    | ast.Delete(targets=[ast.Subscript(value=ast.Name(id=found))])
                ) if found == name:
                    yield Proposal(
                        "The loop iterates over a copy of the list that it changes.",
                        site.source.wrap(loop.iter, "list(", ")"),
                    )
                    return


def late_binding(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Bind the loop's names in the lambda now: it looks them up when it is called, after the loop."""
    for node in site.all(ast.Lambda):
        parameter_names = {arg.arg for arg in node.args.args}
        read = {n.id for n in ast.walk(node.body) if isinstance(n, ast.Name)} - parameter_names
        names: list[str] = []
        loop = _loop(site, node)
        while loop is not None:
            targets = [loop.target] if isinstance(loop, ast.For) else [g.target for g in loop.generators]
            names += [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and n.id in read]
            loop = _loop(site, loop)
        if not names or node.args.vararg or node.args.kwarg or node.args.kwonlyargs:
            continue
        at = site.source.text.rindex(":", site.source.span(node)[0], site.source.span(node.body)[0])
        bound = ", ".join(f"{name}={name}" for name in dict.fromkeys(names))
        text = f", {bound}" if parameter_names else f" {bound}"
        yield Proposal("The function keeps the current value of the name.", [Edit(at, at, text)])


def _loop(site: Site, node: ast.AST) -> ast.For | ast.ListComp | ast.GeneratorExp | None:
    ancestor = site.source.parents.get(node)
    while ancestor is not None and not isinstance(ancestor, ast.For | ast.ListComp | ast.GeneratorExp):
        ancestor = site.source.parents.get(ancestor)
    return ancestor


def same_rows(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Make a list for each place: `[[0] * n] * m` holds one list m times."""
    for node in ast.walk(site.source.tree):
        match node:
            case ast.BinOp(
                left=ast.List(elts=[ast.BinOp(op=ast.Mult()) | ast.List() | ast.Dict() as row]),
                op=ast.Mult(),
                right=times,
            ):
                text = f"[{site.source.segment(row)} for _ in range({site.source.segment(times)})]"
                yield Proposal("Create a separate list for each row.", site.source.replace(node, text))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="dict"), attr="fromkeys"),
                args=[keys, ast.List() | ast.Dict() as value],
            ):
                text = f"{{key: {site.source.segment(value)} for key in {site.source.segment(keys)}}}"
                yield Proposal("Create a separate list for each key.", site.source.replace(node, text))
