"""Edits that add a missing case, condition, return or update."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import Function, Jump, free_names, stored_names
from healkit.parts.explain.source import BIT_OR
from healkit.parts.explain.wrong_results import stored
from healkit.parts.heal.advisors.search.operators.definition import Changes, operator
from healkit.parts.heal.advisors.search.program import (
    COLLECTIONS,
    NUMBERS,
    Change,
    Program,
    conditions,
    guess_types,
    may_have_type,
    results,
)


def _inserted(edit: Edit | None, weight: float, *, guard: bool = False, line: int = 0) -> Changes:
    if edit is not None:
        yield Change((edit,), weight, guard, line)


@operator(
    "a special case at the beginning",
    0.25,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    most=2.0,
    before="def f(n):\n    return n * f(n - 1)",
    after="def f(n):\n    if n == 0:\n        return 1\n    return n * f(n - 1)",
)
def add_first_case(program: Program, node: Function) -> Changes:
    body = node.body[1:] if len(node.body) > 1 and _is_text(node.body[0]) else node.body
    recursive = any(
        isinstance(part, ast.Call) and program.segment(part.func).endswith(node.name)
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
    )
    weight = 1.6 if recursive else 1.0
    for test in conditions(program, body[0]):
        for value in results(program, node):
            yield from _inserted(
                program.insert(body[0], [f"if {test}:", f"\treturn {value}"]),
                weight,
                guard=True,
                line=body[0].lineno,
            )
        for error in program.hints.errors:
            text = f"raise {error}({_message(test)!r})"
            yield from _inserted(
                program.insert(body[0], [f"if {test}:", f"\t{text}"]), 2.0, line=body[0].lineno
            )


def _message(test: str) -> str:
    return f"not allowed: {test}"


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@operator(
    "a special case in the middle",
    0.17,
    ast.stmt,
    most=1.5,
    before="def f(a):\n    for x in a:\n        y = 1 / x\n    return y",
    after="def f(a):\n    for x in a:\n        if x == 0:\n            continue\n        y = 1 / x\n    return y",
)
def add_case(program: Program, node: ast.stmt) -> Changes:
    home, function = program.home(node), program.function(node)
    block, position = program.places[node]
    if home is None or isinstance(node, ast.FunctionDef) or (position == 0 and block is home.body):
        return
    in_loop = any(isinstance(around, ast.For | ast.While) for around in program.around(node))
    tests = conditions(program, node)
    for test in tests[:24]:
        if in_loop:
            for word in ("continue", "break"):
                yield from _inserted(program.insert(node, [f"if {test}:", f"\t{word}"]), 1.0, guard=True)
        for value in results(program, function)[:8] if function is not None else ():
            yield from _inserted(program.insert(node, [f"if {test}:", f"\treturn {value}"]), 0.8, guard=True)
        for error in program.hints.errors:
            yield from _inserted(
                program.insert(node, [f"if {test}:", f"\traise {error}({_message(test)!r})"]), 1.5
            )


@operator(
    "a statement made conditional",
    0.3,
    ast.Expr,
    ast.Assign,
    ast.AugAssign,
    before="def f(a, b):\n    a.append(b)\n    if b:\n        return b\n    return a",
    after="def f(a, b):\n    if b:\n        a.append(b)\n    if b:\n        return b\n    return a",
)
def make_conditional(program: Program, node: ast.stmt) -> Changes:
    rows = program.rows(node)
    if rows is None or program.home(node) is None or rows[0] != rows[1]:
        return
    whole = (program.source.line_start(rows[0]), program.source.line_end(rows[1]))
    line, indent, newline = program.source.line(rows[0]).strip(), program.indent(node), program.source.newline
    wider = [name for name in program.names(node)[:8] if not program.types(name, node) & {"function", "type"}]
    unequal = _unequal(program, node) if isinstance(node, ast.Expr) else ()
    for place, test in enumerate(dict.fromkeys([*unequal, *conditions(program, node)[:24], *wider])):
        text = f"{indent}if {test}:{newline}{indent}{program.source.indent_unit}{line}"
        yield Change((Edit(*whole, text),), 1.0 if place < 12 else 0.7, line=node.lineno)


def _unequal(program: Program, node: ast.Expr) -> Iterator[str]:
    """Yield conditions that a stored value differs from a name that it is made of."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp | ast.Subscript) and program.is_value(part):
            for name in sorted(free_names(part) & set(program.names(node)))[:3]:
                yield f"{program.piece(part, BIT_OR)} != {name}"


@operator(
    "a `return` added at the end",
    0.45,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    most=1.5,
    before="def f(a):\n    b = a\n    b += 1",
    after="def f(a):\n    b = a\n    b += 1\n    return b",
)
def return_at_end(program: Program, node: Function) -> Changes:
    ending = node.body[-1]
    if isinstance(ending, ast.Return | ast.Raise) or any(
        isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node)
    ):
        return
    for value in dict.fromkeys([*program.locals(node)[:12], *results(program, node)]):
        yield from _inserted(program.insert(ending, [f"return {value}"], after=True), 1.5, line=ending.lineno)


@operator(
    "an initial value before the loop",
    0.4,
    ast.For,
    ast.While,
    before="def f(a):\n    for x in a:\n        n += x\n    return n",
    after="def f(a):\n    n = 0\n    for x in a:\n        n += x\n    return n",
)
def initialize_before_loop(program: Program, node: ast.For | ast.While) -> Changes:
    for name in sorted(set(stored_names(node))):
        for value in ("0", "[]", "''", "{}", "1", "None", "set()", "False", "True"):
            yield from _inserted(program.insert(node, [f"{name} = {value}"]), 1.0)
    if isinstance(program.parent(node), ast.For | ast.While):
        for name in sorted(_outer(program, node)):
            for value in ("0", "[]", "''", "{}", "1", "None", "False", "True"):
                yield from _inserted(program.insert(node, [f"{name} = {value}"]), 0.8)


def _outer(program: Program, node: ast.stmt) -> set[str]:
    """Return the variables of the function around a loop."""
    home = program.home(node)
    return set(program.locals(home)[:12]) if home else set()


@operator(
    "an exception caught",
    0.14,
    ast.Assign,
    ast.Return,
    ast.Expr,
    ast.AugAssign,
    before="def f(a):\n    return int(a)",
    after="def f(a):\n    try:\n        return int(a)\n    except ValueError:\n        return None",
)
def catch_failure(program: Program, node: ast.stmt) -> Changes:
    rows, function = program.rows(node), program.function(node)
    if rows is None or program.home(node) is None or rows[0] != rows[1]:
        return
    line, indent, newline = program.source.line(rows[0]).strip(), program.indent(node), program.source.newline
    in_loop = any(isinstance(around, ast.For | ast.While) for around in program.around(node))
    whole = (program.source.line_start(rows[0]), program.source.line_end(rows[1]))
    values = results(program, function)[:8] if function is not None else ()
    endings = [f"return {value}" for value in values] + (["continue"] if in_loop else [])
    for error in (
        "ValueError",
        "KeyError",
        "IndexError",
        "TypeError",
        "ZeroDivisionError",
        "(TypeError, ValueError)",
    ):
        for ending in endings:
            block = [
                "try:",
                f"{program.source.indent_unit}{line}",
                f"except {error}:",
                f"{program.source.indent_unit}{ending}",
            ]
            yield Change(
                (Edit(*whole, newline.join(indent + block_line for block_line in block)),), 1.0, guard=True
            )


# Missing updates of a variable.


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
    condition_names = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
    condition_names -= set(program.defined) | {"len", "abs", "min", "max", "any", "all", "int"}
    steps = dict.fromkeys(
        program.segment(part)
        for part in ast.walk(node)
        if isinstance(part, ast.AugAssign)
        and isinstance(part.target, ast.Name)
        and part.target.id in condition_names
    )
    names = [name for name in sorted(condition_names) if may_have_type(program.types(name, node), NUMBERS)]
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
    loop_names = (
        {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
        if isinstance(node, ast.For)
        else set()
    )
    bound = set(stored_names(node)) - loop_names
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
    for place, first_name in enumerate(used):
        for second_name in used[place + 1 :]:
            kinds = program.types(first_name, node), program.types(second_name, node)
            if kinds[0] and kinds[1] and not kinds[0] & kinds[1]:
                continue
            instead = {first_name: second_name, second_name: first_name}
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
