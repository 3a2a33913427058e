"""Classic mistakes that raise no exception."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.failures.pattern import NO_EXCEPTION, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site
from healkit.pysource.nodes import Function, own_nodes, parameters
from healkit.pysource.source import Source

_TEXT_METHODS = frozenset(name for name in dir(str) if not name.startswith(("_", "is")))


def _identity(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for node in site.all(ast.Compare):
        right = node.comparators[0]
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Is | ast.IsNot):
            continue
        if isinstance(right, ast.Constant) and (right.value is None or isinstance(right.value, bool)):
            continue
        start, end = site.source.span(node.left)[1], site.source.span(right)[0]
        sign = "==" if isinstance(node.ops[0], ast.Is) else "!="
        yield Proposal(
            f"`is` tests for the same object; `{sign}` compares values.",
            [Edit(start, end, f" {sign} ")],
        )


def _thrown_away(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def _float_equality(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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
        left, right = site.source.segment(node.left), site.source.segment(node.comparators[0])
        if any(
            isinstance(side, ast.Constant) and not isinstance(side.value, float)
            for side in (node.left, node.comparators[0])
        ):
            continue
        sign = "" if isinstance(node.ops[0], ast.Eq) else "not "
        text = f"{sign}math.isclose({left}, {right}, abs_tol=1e-9)"
        edits = site.source.replace(node, text if not sign else f"({text})")
        edits += (
            []
            if re.search(r"^import math$", site.source.text, re.MULTILINE)
            else site.source.add_import("import math")
        )
        yield Proposal("Compare floats with a tolerance.", edits)


def _any_of(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def _too_early(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def _first_decides(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """End the loop only for what is not good: `if good: return True`, else `return False`."""
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
        other = owner.orelse[0] if owner else last
        after = f"{source.indent(loop.lineno)}{source.segment(test.body[0])}{source.newline}"
        after = "" if _followed(source.parents[loop], loop) else after
        edits = [
            *source.replace(test.test, _negated(site, test.test)),
            *source.replace(test.body[0], source.segment(other)),
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


def _no_f(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Add the `f` to a text with `{name}` in it."""
    edits: list[Edit] = []
    known = {arg.arg for f in ast.walk(site.source.tree) if isinstance(f, Function) for arg in parameters(f)}
    known |= {n.id for n in own_nodes(site.scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in site.all(ast.Constant):
        parent = site.source.parents[node]
        if not isinstance(node.value, str) or isinstance(parent, ast.Attribute | ast.Expr | ast.JoinedStr):
            continue
        named = re.findall(r"\{(\w+)[^{}]*\}", node.value)
        if named and set(named) <= known and site.source.segment(node)[0] in "'\"":
            at = site.source.span(node)[0]
            edits.append(Edit(at, at, "f"))
    if edits:
        yield Proposal("Names in braces are replaced only in an f-string.", edits)


def _unequal(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        (NO_EXCEPTION,),
        fixes=(
            Fix(
                name="identity",
                mistake="`is` instead of `==`",
                priority=0.9,
                propose=_identity,
                example=FixExample(
                    "def tool(a):\n    return a is a[::-1]\n",
                    "def tool(a):\n    return a == a[::-1]\n",
                    {"a": "bb"},
                ),
                lookalike=FixExample("def tool(a):\n    return a is None\n", "", {"a": "bb"}),
            ),
            Fix(
                name="thrown_away",
                mistake="a new string that is not assigned",
                priority=0.9,
                propose=_thrown_away,
                example=FixExample(
                    "def tool(a):\n    a.replace('-', '')  # dashes\n    a.strip()\n    return a\n",
                    "def tool(a):\n    a = a.replace('-', '')  # dashes\n    a = a.strip()\n    return a\n",
                    {"a": " a-b"},
                ),
                lookalike=FixExample(
                    "def tool(a):\n    b = []\n    b.append(a)\n    return b\n", "", {"a": " a-b"}
                ),
            ),
            Fix(
                name="float_equality",
                mistake="floats compared for exact equality",
                priority=0.75,
                propose=_float_equality,
                example=FixExample(
                    "def tool(a, b):\n    return a + 0.2 == b\n",
                    "import math\n\n\ndef tool(a, b):\n    return math.isclose(a + 0.2, b, abs_tol=1e-9)\n",
                    {"a": 0.1, "b": 0.3},
                ),
                lookalike=FixExample("def tool(a, b):\n    return a == 'x'\n", "", {"a": 0.1, "b": 0.3}),
            ),
            Fix(
                name="any_of",
                mistake="a comparison with several values at once",
                priority=0.9,
                propose=_any_of,
                example=FixExample(
                    "def tool(a):\n    return a == 1 or 2\n",
                    "def tool(a):\n    return a in (1, 2)\n",
                    {"a": 3},
                ),
                lookalike=FixExample("def tool(a):\n    return a == 1 or a == 2\n", "", {"a": 3}),
            ),
            Fix(
                name="too_early",
                mistake="a loop that returns on its first iteration",
                priority=0.7,
                propose=_too_early,
                example=FixExample(
                    "def tool(a):\n    total = 0\n    for n in a:\n        total += n\n        return total\n",
                    "def tool(a):\n    total = 0\n    for n in a:\n        total += n\n    return total\n",
                    {"a": [1, 2]},
                ),
                lookalike=FixExample(
                    "def tool(a):\n    for n in a:\n        if n:\n            return n\n    return 0\n",
                    "",
                    {"a": [1, 2]},
                ),
            ),
            Fix(
                name="first_decides",
                mistake="a loop that returns either way on its first iteration",
                priority=0.8,
                propose=_first_decides,
                example=FixExample(
                    "def tool(a):\n    for n in a:\n        if n > 0:\n            return True\n        return False\n    return True\n",
                    "def tool(a):\n    for n in a:\n        if n <= 0:\n            return False\n    return True\n",
                    {"a": [1, -1]},
                ),
                lookalike=FixExample(
                    "def tool(a):\n    for n in a:\n        if n:\n            return n\n    return 0\n",
                    "",
                    {"a": [1, -1]},
                ),
            ),
            Fix(
                name="no_f",
                mistake="names in braces in a string that is not an f-string",
                priority=0.8,
                propose=_no_f,
                example=FixExample(
                    "def tool(a):\n    return 'Hello {a}!'\n",
                    "def tool(a):\n    return f'Hello {a}!'\n",
                    {"a": 1},
                ),
                lookalike=FixExample("def tool(a):\n    return 'Hello {b}!'\n", "", {"a": 1}),
            ),
            Fix(
                name="unequal",
                mistake="`==` instead of `=`, or `=+` instead of `+=`",
                priority=0.85,
                propose=_unequal,
                example=FixExample(
                    "def tool(a):\n    b = 0\n    for n in a:\n        b =+ n\n    return b\n",
                    "def tool(a):\n    b = 0\n    for n in a:\n        b += n\n    return b\n",
                    {"a": [1, 2]},
                ),
                lookalike=FixExample("def tool(a):\n    b = -len(a)\n    return b\n", "", {"a": [1, 2]}),
            ),
        ),
    ),
)
