"""Calls: of non-functions, missing ones, wrong arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import BUILTINS, Function, called_name, parameters
from healkit.errors import near_misses
from healkit.parts.explain.attributes import TYPES
from healkit.parts.explain.names import renamed_variable, with_self
from healkit.parts.explain.site import Proposal, Site


def uncalled(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Add the missing parentheses of a call: `text.split[0]`, `for key in d.items:`."""
    source = site.source
    methods = {name for kind in TYPES.values() for name in dir(kind) if not name.startswith("_")}
    arities = {n.name: len(n.args.args) for n in ast.walk(source.tree) if isinstance(n, ast.FunctionDef)}
    if (operand := _function_operand(site)) is not None:
        reason = f"`{source.segment(operand)}` is not called: add parentheses."
        yield Proposal(reason, source.wrap(operand, "", "()"))
        return
    named: list[ast.Attribute | ast.Name] = [*site.nodes(ast.Attribute), *site.nodes(ast.Name)]
    named = [
        candidate for candidate in named if getattr(source.parents[candidate], "func", None) is not candidate
    ]
    in_brackets = "subscriptable" in site.message
    if in_brackets and site.marked is not None:
        subscripted = [subscript.value for subscript in site.nodes(ast.Subscript)[:1]]
        named = [candidate for candidate in named if candidate in subscripted] or named
    parts = [candidate for candidate in named if isinstance(candidate, ast.Attribute)]
    for node in named:
        called = source.parents[node]
        if isinstance(called, ast.Subscript) and called.value is node and not in_brackets:
            continue
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        if isinstance(node, ast.Attribute) and (name in methods or arities.get(name) == 1):
            yield Proposal(f"`.{name}` is not called: add parentheses.", source.wrap(node, "", "()"))
            if in_brackets and isinstance(called, ast.Subscript):
                inside = source.text[source.span(node)[1] : source.span(called)[1]].strip()[1:-1]
                text = f"{source.segment(node)}({inside})"
                yield Proposal(
                    f"`{name}` is called with parentheses.", source.replace(called, text), less=0.02
                )
        elif (
            isinstance(called, ast.Subscript)
            and called.value is node
            and (name in arities or name in BUILTINS)
        ):
            start, end = source.span(node)
            inside = source.segment(called)[end - start :].strip()[1:-1]
            yield Proposal(f"`{name}` is a function; call it with parentheses.",
                      source.replace(called, f"{source.segment(node)}({inside})"))  # fmt: skip
        elif isinstance(node, ast.Name) and arities.get(name) == 0:
            yield Proposal(f"`{name}` is not called: add parentheses.", source.wrap(node, "", "()"))
        elif isinstance(node, ast.Attribute) and not in_brackets:
            less = 0.02 if len(parts) == 1 else 0.3  # one of them is
            yield Proposal(
                f"`.{name}` is not called: add parentheses.", source.wrap(node, "", "()"), less=less
            )
        elif isinstance(called, ast.Subscript) and called.value is node and isinstance(called.ctx, ast.Load):
            start, end = source.span(called)
            inside = source.text[source.span(node)[1] : end].strip()[1:-1]
            text = f"{source.text[start : source.span(node)[1]]}({inside})"
            yield Proposal(f"`{name}` is called with parentheses.", source.replace(called, text), less=0.02)
        elif (
            isinstance(called, ast.Assign)
            and called.value is node
            and isinstance(called.targets[0], ast.Tuple)
        ):
            yield Proposal(f"`{name}` is not called: add parentheses.", source.wrap(node, "", "()"))


def _function_operand(site: Site) -> ast.expr | None:
    """Return the operand, or the owner of an attribute, that the message calls a function; None if there is none."""
    message = site.message
    kinds = re.search(r"for .+?: '(\w+)' and '(\w+)'", message)
    for node in site.nodes(ast.BinOp)[:1]:
        for side, kind in zip((node.left, node.right), kinds.groups() if kinds else (), strict=False):
            is_function = kind.endswith(("function", "method", "function_or_method"))
            if is_function and isinstance(side, ast.Attribute | ast.Name):
                return side
    wanted = re.search(r"'(?:function|method)' object has no attribute '(\w+)'", message)
    return next(
        (
            attribute.value
            for attribute in site.nodes(ast.Attribute)
            if wanted and attribute.attr == wanted[1]
        ),
        None,
    )


def made_of_class(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Add the parentheses that create an object if the class itself was assigned to a variable."""
    name = site.facts.get("owner", "").strip("`")
    reason = f"`{name}` is a class: parentheses create an object of it."
    assignments = [
        assignment
        for assignment in site.assignments(name)
        if isinstance(assignment.value, ast.Name | ast.Attribute)
    ]
    for assignment in assignments[-1:]:
        yield Proposal(reason, site.source.wrap(assignment.value, "", "()"))
    if (
        not assignments
        and name.isidentifier()
        and site.is_cell
        and name in site.given
        and site.statement is not None
    ):
        yield Proposal(reason, site.source.insert_before(site.statement, f"{name} = {name}()"))
    for node in site.nodes(ast.Attribute):
        if not assignments and site.source.segment(node.value) == name:
            yield Proposal(reason, site.source.wrap(node.value, "", "()"), less=0.1)


#: Types that something is looked up in with square brackets.
_INDEXED = frozenset(("list", "dict", "str", "tuple", "DataFrame", "Series", "numpy.ndarray", "Index"))


def no_function(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Replace a call of a value that is not a function: index it, only read it, or rename what hides the function."""
    source, kind = site.source, match["kind"]
    article = "an" if kind[:1] in "aeiou" else "a"
    for call in site.nodes(ast.Call)[:3]:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in BUILTINS:
            yield from renamed_variable(site, name)
            if site.function is None and name in site.given and site.statement is not None:
                edits = source.insert_before(source.tree.body[0], f"from builtins import {name}")
                reason = f"A variable `{name}` hides the built-in function; the import brings it back."
                yield Proposal(reason, edits, kind="restores")
                edits = source.insert_before(source.tree.body[0], "import builtins")
                edits += source.replace(call.func, f"builtins.{name}")
                reason = f"A variable `{name}` hides the built-in function, which `builtins` has."
                yield Proposal(reason, edits, less=0.01, kind="restores")
        many = len(call.args) > 1 and kind in ("numpy.ndarray", "DataFrame")
        if (len(call.args) == 1 or many) and kind in _INDEXED and not call.keywords:
            text = f"{source.segment(call.func)}[{', '.join(map(source.segment, call.args))}]"
            yield Proposal(
                f"Use square brackets to look something up in a {kind}.", source.replace(call, text), 0.05
            )
        if not call.args and not call.keywords:
            yield Proposal(
                f"`{source.segment(call.func)}` is {article} `{kind}`, not a function.",
                source.replace(call, source.segment(call.func)),
            )
        if isinstance(call.func, ast.Constant) and kind in {"int", "float"}:
            start = source.span(call.func)[1]
            text = f"{source.segment(call.func)} * {source.text[start : source.span(call)[1]].strip()}"
            yield Proposal("A number before a parenthesis needs `*` to multiply.", source.replace(call, text))


# Arguments that do not fit the function


#: Functions and methods that take one collection, not several values.
_TAKE_A_COLLECTION = frozenset((
    "set", "list", "tuple", "join", "sum", "all", "any", "frozenset", "len", "extend", "update",
))  # fmt: skip


def _called(site: Site, name: str) -> list[ast.Call]:
    """Return the calls of that function: on the failing line, else in the failing function."""
    bare = name.rpartition(".")[2]
    here = [call for call in site.nodes(ast.Call) if called_name(call) == bare]
    return here or [call for call in site.body_nodes(ast.Call) if called_name(call) == bare]


def _own(site: Site, name: str) -> Function | None:
    bare = name.rpartition(".")[2]
    return next((n for n in ast.walk(site.source.tree) if isinstance(n, Function) and n.name == bare), None)


def keyword(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    wrong, function = match["name"], _own(site, match["function"])
    parameter_names = [arg.arg for arg in parameters(function)] if function else []
    calls = [
        *_called(site, match["function"]),
        *site.nodes(ast.Call),
    ]  # a library names what it calls in turn
    named = [(call, keyword) for call in calls for keyword in call.keywords if keyword.arg == wrong]
    for call, keyword in named[:1]:
        free = [name for name in parameter_names if name not in {k.arg for k in call.keywords}]
        near = site.near(wrong, free) or near_misses(wrong, free)
        rights = near or (free[len(call.args) :][:1] if function else [])
        for number, right in enumerate(rights):
            start = site.source.span(keyword)[0]
            edits = [Edit(start, start + len(wrong), right)]
            yield Proposal(
                f"`{called_name(call) or match['function']}` has no parameter `{wrong}`; it has `{right}`.",
                edits,
                less=0.05 * number,
            )


def missing_argument(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    names = re.findall(r"'(\w+)'", match["names"])
    source = site.source
    for call in _called(site, match["function"])[:1]:
        available = site.names()
        func = call.func
        if (
            isinstance(func, ast.Attribute)
            and isinstance(func.value, ast.Name)
            and any(node.name == func.value.id for node in site.all(ast.ClassDef))
        ):
            yield Proposal(f"`{func.attr}` is called on the class; it needs an instance.",
                      source.replace(func.value, f"{func.value.id}()"))  # fmt: skip
        if all(name in available for name in names):
            text = ", ".join(f"{name}={name}" if call.keywords else name for name in names)
            edits = source.add_argument(call, text)
            yield Proposal(f"The argument `{', '.join(names)}` is missing.", edits)
    function = _own(site, match["function"])
    if function is not None and len(names) == 1 and not _called(site, match["function"]):
        yield from _optional(site, function, names[0])


def _optional(site: Site, function: Function, name: str) -> Iterator[Proposal]:
    """Give the parameter a default: the tool itself is called without it."""
    arg = next(arg for arg in parameters(function) if arg.arg == name)
    end = site.source.span(arg)[1]
    yield Proposal(
        f"Give `{name}` the default value `None`.",
        [Edit(end, end, " = None" if arg.annotation else "=None")],
        guard=True,
    )


def too_many_arguments(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Make one collection of several arguments, or drop the last one in a call of the code's own function."""
    name = match["function"]
    bare = name.rpartition(".")[2]
    source = site.source
    for call in _called(site, name)[:1]:
        if any(isinstance(argument, ast.Starred) for argument in call.args) or len(call.args) < 2:
            continue
        start, end = source.span(call.args[0])[0], source.span(call.args[-1])[1]
        inside = source.text[start:end]
        if bare in {"append", "add", "remove", "index", "count"}:
            yield Proposal(
                f"`{bare}` takes one argument: a tuple of the values.", [Edit(start, end, f"({inside})")]
            )
            if bare == "append":
                func_end = source.span(call.func)[1]
                edits = [Edit(func_end - 6, func_end, "extend"), Edit(start, end, f"[{inside}]")]
                yield Proposal("`append` takes one value; `extend` takes a list.", edits, less=0.1)
        elif bare in _TAKE_A_COLLECTION:
            yield Proposal(
                f"`{bare}` takes one iterable: put the values into a list.", [Edit(start, end, f"[{inside}]")]
            )
        elif bare == "sorted" and len(call.args) == 2:
            at = source.span(call.args[1])[0]
            yield Proposal("Pass the sort key as `key=`.", [Edit(at, at, "key=")])
            yield Proposal("Pass the sort order as `reverse=`.", [Edit(at, at, "reverse=")], less=0.1)
        elif (function := _own(site, bare)) is not None:
            most = len(function.args.args)
            cut = source.span(call.args[len(call.args) - 2])[1]
            if len(call.args) == most + 1:
                yield Proposal(f"`{bare}` takes one argument fewer.", [Edit(cut, end, "")], less=0.1)


def named_only(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Pass arguments by name if the function's signature takes them by name only."""
    facts = site.facts
    names = re.findall(r"`(\w+)`", facts.get("names", ""))
    for call in _called(site, facts.get("function", "").strip("`"))[:1]:
        moved = call.args[int(facts["kept"]) :]
        if len(moved) == len(names):
            starts = [site.source.span(argument)[0] for argument in moved]
            edits = [Edit(at, at, f"{name}=") for at, name in zip(starts, names, strict=True)]
            yield Proposal(f"{facts['function']} takes {facts['names']} by name.", edits)


def unawaited(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Await an `async def` function before its value is used."""
    source = site.source
    waiting = {node.name for node in site.all(ast.AsyncFunctionDef)}
    for call in site.body_nodes(ast.Call):
        name = called_name(call)
        if name not in waiting or isinstance(source.parents[call], ast.Await):
            continue
        if isinstance(site.function, ast.AsyncFunctionDef) or (site.is_cell and site.function is None):
            parent = source.parents[call]
            plain = isinstance(parent, ast.stmt | ast.Call | ast.List | ast.Tuple | ast.keyword)
            text = f"await {source.segment(call)}"
            yield Proposal(f"`{name}` must be awaited.", source.replace(call, text if plain else f"({text})"))
        else:
            edits = source.replace(call, f"asyncio.run({source.segment(call)})")
            if "import asyncio" not in source.text:
                edits += site.add_import("import asyncio")
            yield Proposal(f"`{name}` is a coroutine function; run it with `asyncio.run`.", edits)


def await_inside(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Await the argument of `asyncio.run` if a loop is already running: in a coroutine, or at the top of a cell."""
    source = site.source
    if not (isinstance(site.function, ast.AsyncFunctionDef) or (site.is_cell and site.function is None)):
        return
    for call in site.nodes(ast.Call):
        if called_name(call) in ("run", "run_until_complete") and len(call.args) == 1:
            coroutine = call.args[0]
            if isinstance(source.parents[call], ast.stmt | ast.Call | ast.List | ast.Tuple | ast.keyword):
                text = f"await {source.segment(coroutine)}"
            else:
                text = f"(await {source.segment(coroutine)})"
            yield Proposal(
                "An event loop is already running here, so use `await`.", source.replace(call, text)
            )


#: Names that are written for `__init__`.
_INIT = re.compile(r"_*(?:init|int|inti|iniit)_*", re.IGNORECASE)


def init_name(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Rename a method that should be `__init__`."""
    source = site.source
    for node in site.all(ast.ClassDef):
        methods = [member for member in node.body if isinstance(member, ast.FunctionDef)]
        if node.name != match["cls"] or any(member.name == "__init__" for member in methods):
            continue
        for method in methods:
            if _INIT.fullmatch(method.name):
                line = source.line_start(method.lineno)
                at = source.text.index(method.name, source.text.index("def", line) + 3)
                edits = [Edit(at, at + len(method.name), "__init__")]
                yield Proposal(f"`{method.name}` of `{node.name}` should be `__init__`.", edits)


def method_without_self(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Add `self` to a method that has no parameter for its object."""
    name = match["function"].rpartition(".")[2]
    for node in ast.walk(site.source.tree):
        if (
            isinstance(node, Function)
            and node.name == name
            and isinstance(site.source.parents[node], ast.ClassDef)
            and not any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
        ):
            yield from with_self(site, node)
