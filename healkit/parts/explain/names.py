"""Names that are not defined, or have no value yet."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeGuard

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import (
    BUILTINS,
    Function,
    bound_names,
    first_statement,
    header_nodes,
    own_nodes,
    parameters,
)
from healkit.errors import near_misses
from healkit.parts.explain.known_names import FOREIGN_NAMES
from healkit.parts.explain.site import Proposal, Site


def _loads(site: Site, name: str) -> list[ast.Name]:
    """Return where a name is read that nothing around it binds, such as the `for` of a comprehension."""
    loads = [n for n in site.body_nodes(ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]
    return [node for node in loads if not _is_bound_around(site, node)]


def _is_bound_around(site: Site, node: ast.Name) -> bool:
    child: ast.AST | None = node
    while child is not None and not isinstance(child, ast.stmt):
        parent = site.source.parents.get(child)
        loops: list[ast.comprehension] = getattr(parent, "generators", [])
        first = loops[0].iter if loops else None  # which is read outside of the comprehension
        if any(_binds(loop.target, node.id) for loop in loops) and not (
            isinstance(child, ast.comprehension)
            and child is loops[0]
            and any(part is node for part in ast.walk(first or child))
        ):
            return True
        if isinstance(parent, ast.Lambda) and node.id in [parameter.arg for parameter in parent.args.args]:
            return True
        child = parent
    return False


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))


def near_name(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    unbound = _bound_first(site)
    names = [n for n in site.names() if n != name and n not in unbound]
    related = [
        n for n in names if len(name) > 2 and len(n) > 2 and (n.startswith(name) or name.startswith(n))
    ]
    parts = [n for n in names if set(n.split("_")) & set(name.split("_")) - {""}]
    near = site.near(name, names)
    candidates = [*near, *related, *parts, *near_misses(name, BUILTINS, 1)]
    wrong = _loads(site, name)
    for number, right in enumerate(dict.fromkeys(candidates)):
        if right == name or (right in BUILTINS and near_misses(name, [right]) == [] and right not in names):
            continue
        less = 0.02 * number + (0.25 if right not in near else 0.0)
        yield Proposal(f"`{name}` is not defined; `{right}` is.", site.source.replace_all(wrong, right), less)
        if number >= 4:
            return


def _bound_first(site: Site) -> set[str]:
    """Return the names that have no value before the failing statement gives them one."""
    if site.statement is None or not site.is_cell or site.function is not None:
        return set()
    stored_names = {node.id for node in header_nodes(site.statement) if _is_stored(node)}
    before = {
        node.id for node in site.all(ast.Name) if _is_stored(node) and node.lineno < site.statement.lineno
    }
    return stored_names - before - site.given.keys()


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def foreign_name(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    if right := FOREIGN_NAMES.get(name):
        yield Proposal(
            f"In Python, `{name}` is `{right}`.", site.source.replace_all(_loads(site, name), right)
        )


def unquoted_key(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Quote a key of the data: `row[name]` where the data have a key "name"."""
    name = match["name"]
    if name not in site.data_keys():
        return
    keys = [n for n in _loads(site, name) if isinstance(site.source.parents[n], ast.Subscript | ast.Call)]
    if keys:
        yield Proposal(
            f"`{name}` is a key of the data and needs quotes.", site.source.replace_all(keys, f'"{name}"')
        )


def quoted_annotation(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Quote the annotations with a name that nothing else reads: quoted, they are not evaluated."""
    name = match["name"]
    places = [getattr(node, field, None) for node in site.all(ast.AST) for field in ("annotation", "returns")]
    annotated_places = [place for place in places if place is not None and _reads(place, name)]
    if annotated_places and _reads(site.source.tree, name) == sum(
        _reads(place, name) for place in annotated_places
    ):
        edits = [site.source.replace(place, repr(site.source.segment(place))) for place in annotated_places]
        yield Proposal(
            f"`{name}` is used only in annotations; in quotes they are not evaluated.",
            [edit for group in edits for edit in group],
        )


def _reads(tree: ast.AST, name: str) -> int:
    return sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _class_of(site: Site) -> ast.ClassDef | None:
    parent = site.source.parents.get(site.function) if site.function else None
    return parent if isinstance(parent, ast.ClassDef) else None


def of_self(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name, owner = match["name"], _class_of(site)
    if owner is None or site.function is None or not parameters(site.function):
        return
    first = parameters(site.function)[0].arg
    stored = {
        n.attr
        for n in ast.walk(owner)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == first
    }
    if name in bound_names(owner) or name in stored:
        edits = site.source.replace_all(_loads(site, name), f"{first}.{name}")
        yield Proposal(f"`{name}` belongs to the object: write `{first}.{name}`.", edits)


def no_self(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    if match["name"] == "self" and site.function is not None and _class_of(site) is not None:
        yield from with_self(site, site.function)


def with_self(site: Site, function: Function) -> Iterator[Proposal]:
    names = parameters(function)
    if names and names[0].arg == "self":
        return
    start = (
        site.source.text.index("(", site.source.text.index(function.name, site.source.span(function)[0])) + 1
    )
    edits = [Edit(start, start, "self, " if names else "self")]
    yield Proposal(f"The method `{function.name}` has no `self` parameter.", edits)


def accumulator(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Give a name that is only added to a first value: `total += x` with no `total` before it."""
    yield from starts_for(site, match["name"])


def starts_for(site: Site, name: str) -> Iterator[Proposal]:
    """Propose a first value for a name that is only added to, above the loop that adds."""
    start = None
    place: ast.stmt | None = None
    for node in own_nodes(site.scope):
        match node:
            case ast.AugAssign(target=ast.Name(id=found), op=op, value=value) if found == name:
                start = _neutral(op, value)
                place = node
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=attr)) if found == name:
                start = {"append": "[]", "extend": "[]", "add": "set()", "update": "{}"}.get(attr)
                place = site.source.statement(node)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=found))]) if found == name:
                start, place = "{}", node
        if start is not None and place is not None:
            break
    if (
        start is None
        or place is None
        or (
            name in bound_names(site.scope)
            and any(node.lineno < place.lineno for node in site.assignments(name))
        )
    ):
        return
    outer: ast.stmt = place
    while (loop := site.source.enclosing(outer, ast.For, ast.While, ast.With, ast.If, ast.Try)) is not None:
        if site.function is not None and site.source.enclosing_function(loop) is not site.function:
            break
        outer = loop
    edits = site.source.insert_before(outer, f"{name} = {start}")
    if edits:
        yield Proposal(f"`{name}` is updated but has no initial value: start with `{start}`.", edits)


def _neutral(op: ast.operator, value: ast.expr) -> str | None:
    match op, value:
        case ast.Mult(), _:
            return "1"
        case ast.Add(), ast.Constant(value=str()) | ast.JoinedStr():
            return '""'
        case ast.Add(), ast.List() | ast.ListComp():
            return "[]"
        case ast.Add(), ast.Call(func=ast.Name(id="str" | "chr")):
            return '""'
        case ((ast.Add() | ast.Sub() | ast.BitOr() | ast.BitXor()), _):
            return "0"
    return None


# Local names that are read before they have a value


def _outer(site: Site, name: str) -> str:
    """Return the statement that makes the name the outer one: `nonlocal`, `global`, or none."""
    around = site.source.enclosing_function(site.function) if site.function else None
    while around is not None:
        if name in bound_names(around):
            return "nonlocal"
        around = site.source.enclosing_function(around)
    return "global" if name in bound_names(site.source.tree) or name in site.given else ""


def outer_variable(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    word = _outer(site, name)
    if not word or site.function is None:
        return
    changes = [node for node in site.body_nodes(ast.AugAssign) if _is(node.target, name)]
    edits = site.source.insert_before(first_statement(site.function), f"{word} {name}")
    reason = f"`{name}` is assigned in `{site.function.name}`, so it is local there; `{word}` makes it refer to the outer variable."
    # A branch that overrides a constant hardly means to change it for good.
    yield Proposal(reason, edits, less=0.0 if changes or word == "nonlocal" else 0.3)


def own_copy(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Give the function's own variable another name that starts with the outer value."""
    name = match["name"]
    if not _outer(site, name) or site.function is None:
        return
    local_name = name.lower() if name.lower() != name else f"own_{name}"
    if local_name in site.names() or local_name in BUILTINS:
        return
    first = first_statement(site.function)
    edits = site.source.replace_all((n for n in site.body_nodes(ast.Name) if n.id == name), local_name)
    above = site.source.insert_before(first, f"{local_name} = {name}")
    if above:
        yield Proposal(
            f"The function uses its own variable `{local_name}`, which starts with the value of the outer `{name}`.",
            edits + above,
        )


def _is(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def not_begun(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    if site.function is not None and not _outer(site, name):
        yield from starts_for(site, name)


def shadowed_function(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Rename a variable that has the name of the function that it calls: `max = max(numbers)`."""
    name = match["name"]
    if name in BUILTINS or _outer(site, name):
        yield from renamed_variable(site, name)


def renamed_variable(site: Site, name: str) -> Iterator[Proposal]:
    """Rename the function's own variable; calls keep the name, which then is the outer one."""
    if site.function is None or name in {arg.arg for arg in parameters(site.function)}:
        return
    uses = [node for node in site.body_nodes(ast.Name) if node.id == name]
    called = [n for n in uses if isinstance(p := site.source.parents[n], ast.Call) and p.func is n]
    if not called or not any(isinstance(node.ctx, ast.Store) for node in uses):
        return
    new = next(n for n in (f"{name}_value", f"own_{name}", f"{name}_") if n not in site.names())
    excluded_ids = {id(node) for node in called} | {id(node) for node in _outside(site, site.function)}
    edits = site.source.replace_all((node for node in uses if id(node) not in excluded_ids), new)
    yield Proposal(
        f"The variable `{name}` hides the function of the same name; it is renamed to `{new}`.", edits
    )


def _outside(site: Site, function: Function) -> Iterator[ast.AST]:
    """Yield what is read outside of the function's scope: annotations, default values, decorators."""
    parts: list[ast.expr | None] = [node.annotation for node in site.body_nodes(ast.AnnAssign)]
    parts += [arg.annotation for arg in site.body_nodes(ast.arg)]
    parts += [function.returns, *function.args.defaults, *function.args.kw_defaults, *function.decorator_list]
    for part in parts:
        if part is not None:
            yield from ast.walk(part)


def one_branch(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Give a name that only one branch assigns a first value, which is a guess."""
    name = match["name"]
    if site.function is None or _outer(site, name):
        return
    assigned = site.assignments(name)
    if not assigned or (name in BUILTINS and any(True for _ in renamed_variable(site, name))):
        return
    first = first_statement(site.function)
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
