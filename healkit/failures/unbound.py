"""Local names that are read before they have a value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.failures.names import starts_for
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site
from healkit.pysource.nodes import Function, parameters
from healkit.pysource.scope import BUILTINS, bound_names


def _outer(site: Site, name: str) -> str:
    """Return the statement that makes the name the outer one: `nonlocal`, `global`, or none."""
    around = site.source.enclosing_function(site.function) if site.function else None
    while around is not None:
        if name in bound_names(around):
            return "nonlocal"
        around = site.source.enclosing_function(around)
    return "global" if name in bound_names(site.source.tree) else ""


def _first(function: Function) -> ast.stmt:
    """Return the first statement after the docstring."""
    body = function.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    return body[1] if documented else body[0]


def _outer_variable(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    word = _outer(site, name)
    if not word or site.function is None:
        return
    changes = [node for node in site.body_nodes(ast.AugAssign) if _is(node.target, name)]
    edits = site.source.insert_before(_first(site.function), f"{word} {name}")
    reason = f"`{name}` is assigned in `{site.function.name}`, so it is local there; `{word}` makes it refer to the outer variable."
    # A branch that overrides a constant hardly means to change it for good.
    yield Proposal(reason, edits, less=0.0 if changes or word == "nonlocal" else 0.3)


def _own_copy(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Give the function's own variable another name; it begins with the outer value."""
    name = match["name"]
    if not _outer(site, name) or site.function is None:
        return
    own = name.lower() if name.lower() != name else f"own_{name}"
    if own in site.names() or own in BUILTINS:
        return
    first = _first(site.function)
    edits = [
        e for node in site.body_nodes(ast.Name) if node.id == name for e in site.source.replace(node, own)
    ]
    above = site.source.insert_before(first, f"{own} = {name}")
    if above:
        yield Proposal(
            f"The function uses its own variable `{own}`, which starts with the value of the outer `{name}`.",
            edits + above,
        )


def _is(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _not_begun(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    if site.function is not None and not _outer(site, name):
        yield from starts_for(site, name)


def _shadowed_function(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Rename a variable that has the name of the function that it calls: `max = max(numbers)`."""
    name = match["name"]
    if name in BUILTINS or _outer(site, name):
        yield from renamed_variable(site, name)


def renamed_variable(site: Site, name: str) -> Iterator[Proposal]:
    """Rename the function's own variable; calls keep the name, which is the outer one again."""
    if site.function is None or name in {arg.arg for arg in parameters(site.function)}:
        return
    uses = [node for node in site.body_nodes(ast.Name) if node.id == name]
    called = [n for n in uses if isinstance(p := site.source.parents[n], ast.Call) and p.func is n]
    if not called or not any(isinstance(node.ctx, ast.Store) for node in uses):
        return
    new = next(n for n in (f"{name}_value", f"own_{name}", f"{name}_") if n not in site.names())
    kept = {id(node) for node in called} | {id(node) for node in _outside(site, site.function)}
    edits = [edit for node in uses if id(node) not in kept for edit in site.source.replace(node, new)]
    yield Proposal(
        f"The variable `{name}` hides the function of the same name; it is renamed to `{new}`.", edits
    )


def _outside(site: Site, function: Function) -> Iterator[ast.AST]:
    """Yield what is read outside of the function's scope: annotations, default values, decorators."""
    found: list[ast.expr | None] = [node.annotation for node in site.body_nodes(ast.AnnAssign)]
    found += [arg.annotation for arg in site.body_nodes(ast.arg)]
    found += [function.returns, *function.args.defaults, *function.args.kw_defaults, *function.decorator_list]
    for part in found:
        if part is not None:
            yield from ast.walk(part)


def _one_branch(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Give a name that only one branch assigns a first value, which is a guess."""
    name = match["name"]
    if site.function is None or _outer(site, name):
        return
    assigned = site.assignments(name)
    if not assigned or (name in BUILTINS and any(True for _ in renamed_variable(site, name))):
        return
    first = _first(site.function)
    if site.source.parents[assigned[0]] is site.function:
        yield from _moved_up(site, assigned[0])
        return
    guesses = {"list": "[]", "dict": "{}", "str": '""', "int": "0", "float": "0.0", "bool": "False"}
    like = guesses.get(_kind(assigned[0].value), "None")
    simple = isinstance(site.statement, ast.Return) and _is(site.statement.value, name)
    demanded = [repr(value) for value in site.demanded("") if simple and _simple(value)]
    for number, value in enumerate(dict.fromkeys([*demanded, like, "None"])):
        edits: list[Edit] = site.source.insert_before(first, f"{name} = {value}")
        reason = f"`{name}` is not assigned on every path through the function: start with `{value}`."
        yield Proposal(reason, edits, less=0.1 * number, guard=value not in demanded)


def _moved_up(site: Site, assigned: ast.Assign) -> Iterator[Proposal]:
    """Move the line that gives the value above the line that reads it."""
    if site.statement is None or assigned.lineno <= site.statement.lineno:
        return
    source = site.source
    target: ast.stmt = site.statement
    while (around := source.enclosing(target, ast.stmt)) is not None and around is not site.function:
        target = around
    text = source.segment(assigned)
    if "\n" not in text:
        yield Proposal("The assignment moves above the line that reads it.",
                  [*source.delete(assigned), *source.insert_before(target, text)])  # fmt: skip


def _kind(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=value):
            return type(value).__name__
        case ast.List() | ast.ListComp():
            return "list"
        case ast.Dict() | ast.DictComp():
            return "dict"
        case ast.JoinedStr():
            return "str"
    return ""


def _simple(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str) or value in ([], {})


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("UnboundLocalError",),
        r"local variable '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "unbound_local",
                what="The function reads its local variable `{name}` before assigning it.",
                why=(
                    "An assignment to `{name}` anywhere in a function makes it local to the whole "
                    "function. Python then ignores a variable of that name outside."
                ),
                hint="On which path through the function is `{name}` never assigned?",
                fix="Assign `{name}` at the top of the function, or rename the local variable.",
                example="def f(x):\n    if x:\n        y = 1\n    return y\nf(0)",
            ),
        ),
        fixes=(
            Fix(
                name="outer_variable",
                mistake="a function that changes an outer variable without `global` or `nonlocal`",
                priority=0.85,
                propose=_outer_variable,
                example=FixExample(
                    "def tool(a):\n    count = 0\n\n    def step():\n        count += 1\n        return count\n\n    return [step() for _ in a]\n",
                    "def tool(a):\n    count = 0\n\n    def step():\n        nonlocal count\n        count += 1\n        return count\n\n    return [step() for _ in a]\n",
                    {"a": [1, 2]},
                ),
                lookalike=FixExample(
                    "def tool(a):\n    if a:\n        b = 1\n    return b\n", arguments={"a": 0}
                ),
            ),
            Fix(
                name="own_copy",
                mistake="an outer constant that becomes local because one branch assigns it",
                priority=0.8,
                propose=_own_copy,
                example=FixExample(
                    "RATE = 20\n\n\ndef tool(a):\n    if a > 10:\n        RATE = 10\n    return a * RATE\n",
                    "RATE = 20\n\n\ndef tool(a):\n    rate = RATE\n    if a > 10:\n        rate = 10\n    return a * rate\n",
                    {"a": 1},
                ),
                lookalike=FixExample(
                    "def tool(a):\n    if a:\n        b = 1\n    return b\n", arguments={"a": 0}
                ),
            ),
            Fix(
                name="not_begun",
                mistake="a local name that is updated before it has a value",
                priority=0.9,
                propose=_not_begun,
                example=FixExample(
                    "def tool(a):\n    for n in a:\n        total += n  # all\n    return total\n",
                    "def tool(a):\n    total = 0\n    for n in a:\n        total += n  # all\n    return total\n",
                    {"a": [1]},
                ),
                lookalike=FixExample(
                    "def tool(a):\n    if a:\n        b = 1\n    return b\n", arguments={"a": 0}
                ),
            ),
            Fix(
                name="shadowed_function",
                mistake="a variable with the name of the function that returns its value",
                priority=0.9,
                propose=_shadowed_function,
                example=FixExample(
                    "def tool(a):\n    max = max(a)\n    return max + 1\n",
                    "def tool(a):\n    max_value = max(a)\n    return max_value + 1\n",
                    {"a": [1]},
                ),
                lookalike=FixExample(
                    "def tool(a):\n    if a:\n        b = 1\n    return b\n", arguments={"a": 0}
                ),
            ),
            Fix(
                name="one_branch",
                mistake="a name that is assigned on only one path through the function",
                priority=0.7,
                propose=_one_branch,
                example=FixExample(
                    "def tool(a):\n    if a:\n        b = 'yes'\n    return b\n",
                    "def tool(a):\n    b = 'no'\n    if a:\n        b = 'yes'\n    return b\n",
                    {"a": 0},
                    right="no",
                ),
                lookalike=FixExample(
                    "def tool(a):\n    max = max(a)\n    return max\n", arguments={"a": [1]}
                ),
            ),
        ),
    ),
    FailurePattern(
        ("NameError",),
        r"free variable '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "free_variable",
                what="An inner function reads `{name}` before the outer function assigns it.",
                why=(
                    "The inner function looks `{name}` up each time it is called; it does not store the "
                    "value."
                ),
                hint="Is the inner function called too early?",
                fix="Assign `{name}` before the call.",
                example="def f():\n    def g():\n        return x\n    g()\n    x = 1\nf()",
            ),
        ),
    ),
)
