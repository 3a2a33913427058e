"""Edits that add a missing update of a variable."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from healkit.contracts.healing import Edit
from healkit.failures.wrong_results import stored
from healkit.healing.advisors.search.operators.table import Changes, operator
from healkit.healing.advisors.search.program import Change, Program
from healkit.healing.advisors.search.type_guesses import COLLECTIONS, NUMBERS, guess_types, may_have_type
from healkit.pysource.nodes import Jump
from healkit.pysource.scope import free_names, stored_names

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


@operator(
    "an unused result assigned",
    1.0,
    ast.Expr,
    before="def f(n):\n    n // 2\n    return n",
    after="def f(n):\n    n //= 2\n    return n",
)
def keep_result(program: Program, node: ast.Expr) -> Changes:
    """Keep the result of a statement that only computes one."""
    value, (start, end) = node.value, program.source.span(node)
    if isinstance(value, ast.BinOp) and isinstance(value.left, ast.Name | ast.Attribute | ast.Subscript):
        target, right = program.segment(value.left), program.segment(value.right)
        if type(value.op) in _SIGNS:
            yield Change((Edit(start, end, f"{target} {_SIGNS[type(value.op)]}= {right}"),))
        for name in program.names(node)[:8]:
            yield Change((Edit(start, end, f"{name} = {program.segment(value)}"),), 0.6)
    elif edits := stored(program.source, node):
        yield Change(tuple(edits))
    elif isinstance(value, ast.Call) and program.segment(value.func) in program.defined:
        yield from _of_own_function(program, node, value)


def _of_own_function(program: Program, node: ast.Expr, value: ast.Call) -> Changes:
    """Keep the result of a call of the program's own function, often a recursive one."""
    (start, end), text = program.source.span(node), program.segment(value)
    called = program.defined[program.segment(value.func)]
    if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(called)):
        yield Change((Edit(start, end, f"yield from {text}"),))
        return
    if not any(isinstance(part, ast.Return) and part.value is not None for part in ast.walk(called)):
        return
    for name in program.names(node)[:8]:
        kinds = program.types(name, node)
        if kinds & {"list", "deque"}:
            yield Change((Edit(start, end, f"{name}.extend({text})"),), 0.9)
            yield Change((Edit(start, end, f"{name}.append({text})"),), 0.7)
        elif kinds & {"set", "dict"}:
            yield Change((Edit(start, end, f"{name}.update({text})"),), 0.8)
        if not kinds or kinds & (NUMBERS | {"str", "list"}):
            yield Change((Edit(start, end, f"{name} += {text}"),), 0.8)


@operator(
    "an update of the loop variable",
    0.6,
    ast.While,
    most=1.6,
    before="def f(a):\n    i = 0\n    while i < len(a):\n        print(a[i])\n    return i",
    after="def f(a):\n    i = 0\n    while i < len(a):\n        print(a[i])\n        i += 1\n    return i",
)
def advance_loop(program: Program, node: ast.While) -> Changes:
    """Change a variable of the loop's condition on a path that does not, so that the loop ends."""
    asked = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
    asked -= set(program.defined) | {"len", "abs", "min", "max", "any", "all", "int"}
    steps = dict.fromkeys(
        program.segment(part)
        for part in ast.walk(node)
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name) and part.target.id in asked
    )
    names = [name for name in sorted(asked) if may_have_type(program.types(name, node), NUMBERS)]
    usual = dict.fromkeys(f"{name} {sign} 1" for name in names for sign in ("+=", "-="))
    for statement, after in _ways_through(node):
        for text in {**steps, **usual}:
            if (edit := program.insert(statement, [text], after=after)) is not None:
                likely = (1.6 if text in steps else 1.0) if not after else (1.0 if steps else 1.6)
                yield Change((edit,), likely, line=statement.lineno)


def _ways_through(loop: ast.While) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield the ends of the paths: before each `continue`, after the last statement, after each branch."""
    for part in ast.walk(loop):
        if isinstance(part, ast.Continue):
            yield part, False
    if not isinstance(loop.body[-1], Jump):
        yield loop.body[-1], True
    branches = [part for part in loop.body if isinstance(part, ast.If)]
    for branch in branches:
        for block in (branch.body, branch.orelse):
            if len(block) == 1 and isinstance(block[0], ast.If):
                branches.append(block[0])  # an elif, or the only statement of a branch
            elif block and not isinstance(block[-1], Jump):
                yield block[-1], True


@operator(
    "the last group added after the loop",
    0.45,
    ast.For,
    ast.While,
    before="def f(a):\n    b, c = [], []\n    for x in a:\n        if not x:\n            b.append(c)\n            c = []\n"
    "        c.append(x)\n    return b",
    after="def f(a):\n    b, c = [], []\n    for x in a:\n        if not x:\n            b.append(c)\n            c = []\n"
    "        c.append(x)\n    if c:\n        b.append(c)\n    return b",
)
def store_last_group(program: Program, node: ast.For | ast.While) -> Changes:
    """Store the last group after a loop that stores a group when the next one begins."""
    own = (
        {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
        if isinstance(node, ast.For)
        else set()
    )
    bound = set(stored_names(node)) - own
    for statement in ast.walk(node):
        value = _put_away(statement)
        if value is None or not isinstance(statement, ast.stmt) or statement.lineno != statement.end_lineno:
            continue
        text = program.segment(statement)
        carried = [
            name for name in free_names(value) if name in bound or program.types(name, node) & COLLECTIONS
        ]
        for name in sorted(carried):
            for test, weight in ((name, 1.0), (f"{name} is not None", 0.7)):
                edit = program.insert(node, [f"if {test}:", f"\t{text}"], after=True)
                if edit is not None:
                    yield Change((edit,), weight, line=node.lineno)
        if carried and (edit := program.insert(node, [text], after=True)) is not None:
            yield Change((edit,), 0.8, line=node.lineno)


def _put_away(statement: ast.AST) -> ast.expr | None:
    """Return what a statement puts into a collection or adds to a total."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append" | "add" | "extend"), args=[value])):
            return value
        case ast.AugAssign(value=value) | ast.Assign(targets=[ast.Subscript()], value=value):
            return value
    return None


@operator(
    "an item marked as visited",
    0.5,
    ast.If,
    before="def f(a, seen):\n    if a in seen:\n        return 0\n    return 1 + f(a, seen)",
    after="def f(a, seen):\n    if a in seen:\n        return 0\n    seen.add(a)\n    return 1 + f(a, seen)",
)
def record_visit(program: Program, node: ast.If) -> Changes:
    """Add an item to the collection that a condition looks for it in."""
    leaves = isinstance(node.body[-1], Jump)
    for part in ast.walk(node.test):
        if not isinstance(part, ast.Compare) or not isinstance(part.ops[-1], ast.In | ast.NotIn):
            continue
        owner, item = part.comparators[-1], program.segment(part.left)
        if len(part.ops) != 1 or not isinstance(owner, ast.Name | ast.Attribute):
            continue
        kinds = guess_types(program, owner)
        texts = [
            f"{program.segment(owner)}.{how}({item})"
            for how, wanted in _NOTES
            if may_have_type(kinds, wanted)
        ]
        inside = isinstance(part.ops[0], ast.NotIn)
        for text in texts:
            if inside:
                edits = [program.insert(node.body[0], [text])]
            elif node.orelse:
                edits = [program.insert(_last_way(node), [text])]
            else:
                edits = [program.insert(node, [text], after=True)] if leaves else []
            yield from (Change((edit,), line=node.lineno) for edit in edits if edit is not None)


def _last_way(node: ast.If) -> ast.stmt:
    """Return the first statement of the final `else` of an `if` with its `elif`s."""
    block = node.orelse
    while len(block) == 1 and isinstance(block[0], ast.If) and block[0].orelse:
        block = block[0].orelse
    return block[0]


_NOTES = (
    ("add", frozenset({"set"})),
    ("append", frozenset({"list"})),
)


@operator(
    "the same update in the other direction",
    0.55,
    ast.Expr,
    ast.Assign,
    ast.AugAssign,
    before="def f(d, a, b):\n    d[a].append(b)\n    return d",
    after="def f(d, a, b):\n    d[a].append(b)\n    d[b].append(a)\n    return d",
)
def mirror_statement(program: Program, node: ast.stmt) -> Changes:
    """Repeat a statement with two names exchanged, for a symmetric relation."""
    text = program.segment(node)
    used = [name for name in program.names(node)[:8] if re.search(rf"\b{re.escape(name)}\b", text)]
    for place, one in enumerate(used):
        for other in used[place + 1 :]:
            kinds = program.types(one, node), program.types(other, node)
            if kinds[0] and kinds[1] and not kinds[0] & kinds[1]:
                continue
            instead = {one: other, other: one}
            swapped = re.sub(rf"\b({'|'.join(map(re.escape, instead))})\b", _by_name(instead), text)
            if swapped != text and (edit := program.insert(node, [swapped], after=True)) is not None:
                yield Change((edit,), 1.0 if kinds[0] and kinds[1] else 0.5, line=node.lineno)


def _by_name(instead: dict[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda found: instead[found[0]]


@operator(
    "a special case for one element",
    0.4,
    ast.FunctionDef,
    before="def f(a):\n    return g(a)",
    after="def f(a):\n    if len(a) == 1:\n        return a[0]\n    return g(a)",
)
def handle_single_element(program: Program, node: ast.FunctionDef) -> Changes:
    """Handle a collection of one element, which is the result itself."""
    for arg in node.args.args[:3]:
        kinds = program.types(arg.arg, node.body[0])
        if not may_have_type(kinds, COLLECTIONS - {"dict"}) or arg.arg == "self":
            continue
        for value in (f"{arg.arg}[0]", arg.arg, f"str({arg.arg}[0])"):
            lines = [f"if len({arg.arg}) == 1:", f"\treturn {value}"]
            if (edit := program.insert(node.body[0], lines)) is not None:
                yield Change((edit,), 1.0 if kinds else 0.5, guard=True, line=node.body[0].lineno)
