"""Calls with other arguments than the function takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.errors import near_misses
from healkit.healing.rules.records import Example, Fix, Rule
from healkit.healing.rules.sites import Site
from healkit.pysource.nodes import Function, parameters


def _called(site: Site, name: str) -> list[ast.Call]:
    """Calls of that function: on the failing line, else in the failing function."""
    bare = name.rpartition(".")[2]

    def is_it(call: ast.Call) -> bool:
        func = call.func
        return (isinstance(func, ast.Name) and func.id == bare) or (
            isinstance(func, ast.Attribute) and func.attr == bare
        )

    return [call for call in site.nodes(ast.Call) if is_it(call)] or [
        c for c in site.body_nodes(ast.Call) if is_it(c)
    ]


def _own(site: Site, name: str) -> Function | None:
    bare = name.rpartition(".")[2]
    return next((n for n in ast.walk(site.source.tree) if isinstance(n, Function) and n.name == bare), None)


def _keyword(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    wrong, function = match["name"], _own(site, match["function"])
    known = [arg.arg for arg in parameters(function)] if function else []
    for call in _called(site, match["function"])[:1]:
        given = next((k for k in call.keywords if k.arg == wrong), None)
        if given is None:
            continue
        free = [name for name in known if name not in {k.arg for k in call.keywords}]
        near = site.near(wrong, free) or near_misses(wrong, free)
        rights = near or (free[len(call.args) :][:1] if function else [])
        for number, right in enumerate(rights):
            start = site.source.span(given)[0]
            edits = [Edit(start, start + len(wrong), right)]
            yield Fix(f"`{match['function']}` has no `{wrong}`; it has `{right}`.", edits, less=0.05 * number)


def _missing(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    names = re.findall(r"'(\w+)'", match["names"])
    source = site.source
    for call in _called(site, match["function"])[:1]:
        known = site.names()
        func = call.func
        if (
            isinstance(func, ast.Attribute)
            and isinstance(func.value, ast.Name)
            and _is_class(site, func.value.id)
        ):
            yield Fix(f"`{func.attr}` is called on the class; it needs an object.",
                      source.replace(func.value, f"{func.value.id}()"))  # fmt: skip
        if all(name in known for name in names):
            end = source.span(call)[1] - 1
            comma = ", " if call.args or call.keywords else ""
            by_name = bool(call.keywords)
            text = ", ".join(f"{name}={name}" if by_name else name for name in names)
            yield Fix(f"`{', '.join(names)}` is missing in the call.", [Edit(end, end, comma + text)])
    function = _own(site, match["function"])
    if function is not None and len(names) == 1 and not _called(site, match["function"]):
        yield from _optional(site, function, names[0])


def _is_class(site: Site, name: str) -> bool:
    return any(isinstance(n, ast.ClassDef) and n.name == name for n in ast.walk(site.source.tree))


def _optional(site: Site, function: Function, name: str) -> Iterator[Fix]:
    """The tool itself is called without it: only a default helps."""
    arg = next(arg for arg in parameters(function) if arg.arg == name)
    end = site.source.span(arg)[1]
    yield Fix(
        f"`{name}` need not be given.", [Edit(end, end, " = None" if arg.annotation else "=None")], guard=True
    )


def _too_many(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """Some take one list where several values are given; an own function is given one value too many."""
    name = match["function"]
    bare = name.rpartition(".")[2]
    source = site.source
    for call in _called(site, name)[:1]:
        if any(isinstance(argument, ast.Starred) for argument in call.args) or len(call.args) < 2:
            continue
        start, end = source.span(call.args[0])[0], source.span(call.args[-1])[1]
        inside = source.text[start:end]
        if bare in {"append", "add", "remove", "index", "count"}:
            yield Fix(f"`{bare}` takes one value: the tuple of them.", [Edit(start, end, f"({inside})")])
            if bare == "append":
                func_end = source.span(call.func)[1]
                edits = [Edit(func_end - 6, func_end, "extend"), Edit(start, end, f"[{inside}]")]
                yield Fix("`append` takes one value; `extend` takes a list.", edits, less=0.1)
        elif bare in {
            "set",
            "list",
            "tuple",
            "join",
            "sum",
            "all",
            "any",
            "frozenset",
            "len",
            "extend",
            "update",
        }:
            yield Fix(f"`{bare}` takes one collection.", [Edit(start, end, f"[{inside}]")])
        elif bare == "sorted" and len(call.args) == 2:
            at = source.span(call.args[1])[0]
            yield Fix("What to sort by is given as `key=`.", [Edit(at, at, "key=")])
            yield Fix("The direction is given as `reverse=`.", [Edit(at, at, "reverse=")], less=0.1)
        elif (function := _own(site, bare)) is not None:
            most = len(function.args.args)
            left = source.span(call.args[len(call.args) - 2])[1]
            if len(call.args) == most + 1:
                yield Fix(f"`{bare}` takes one value less.", [Edit(left, end, "")], less=0.1)


def _unawaited(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """The value of an `async def` function is used before anybody waited for it."""
    source = site.source
    waiting = {n.name for n in ast.walk(source.tree) if isinstance(n, ast.AsyncFunctionDef)}
    for call in site.body_nodes(ast.Call):
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if name not in waiting or isinstance(source.parents[call], ast.Await):
            continue
        if isinstance(site.function, ast.AsyncFunctionDef):
            parent = source.parents[call]
            plain = isinstance(parent, ast.stmt | ast.Call | ast.List | ast.Tuple | ast.keyword)
            text = f"await {source.segment(call)}"
            yield Fix(f"`{name}` must be awaited.", source.replace(call, text if plain else f"({text})"))
        else:
            edits = source.replace(call, f"asyncio.run({source.segment(call)})")
            if "import asyncio" not in source.text:
                edits += source.add_import("import asyncio")
            yield Fix(f"`{name}` is asynchronous and must be run to its end.", edits)


_CALL = (
    "def area(width, height=1):\n    return width * height\n\n\ndef tool(a, height):\n    return area({0})\n"
)
_WAIT = "async def one(a):\n    return [a]\n\n\nasync def tool(a):\n    return {0}[0]\n"

RULES: tuple[Rule, ...] = (
    Rule(
        name="keyword",
        mends="an argument is given by a name that the function does not have",
        enames=("TypeError",),
        message=r"(?P<function>[\w.]+)\(\) got an unexpected keyword argument '(?P<name>\w+)'",
        priority=0.88,
        propose=_keyword,
        example=Example(
            _CALL.format("a, heigth=height"), _CALL.format("a, height=height"), {"a": 1, "height": 2}
        ),
        lookalike=Example("def tool(a):\n    return sorted(a, zzyzx=1)\n", arguments={"a": [1]}),
    ),
    Rule(
        name="missing_argument",
        mends="an argument is missing whose name has a value there",
        enames=("TypeError",),
        message=r"(?P<function>[\w.]+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (?P<names>.+)",
        priority=0.8,
        propose=_missing,
        example=Example(
            "def area(width, height):\n    return width * height\n\n\ndef tool(a, height):\n    return area(a)\n",
            "def area(width, height):\n    return width * height\n\n\ndef tool(a, height):\n    return area(a, height)\n",
            {"a": 1, "height": 2},
        ),
        lookalike=Example(
            "def area(width, height):\n    return width * height\n\n\ndef tool(a):\n    return area(a)\n",
            arguments={"a": 1},
        ),
    ),
    Rule(
        name="too_many_arguments",
        mends="several values are given where one is taken",
        enames=("TypeError",),
        message=r"(?P<function>[\w.]+)(?:\(\))? (?:takes|expected) .*(?:given|got)",
        priority=0.8,
        propose=_too_many,
        example=Example(
            "def tool(a, b):\n    found = []\n    found.append(a, b)\n    return found\n",
            "def tool(a, b):\n    found = []\n    found.append((a, b))\n    return found\n",
            {"a": 1, "b": 2},
        ),
        lookalike=Example("def tool(a):\n    return chr(a, a)\n", arguments={"a": 1}),
    ),
    Rule(
        name="unawaited",
        mends="an asynchronous call is not awaited",
        enames=("TypeError", "AttributeError"),
        message=r"'coroutine'|coroutine",
        priority=0.95,
        propose=_unawaited,
        example=Example(_WAIT.format("one(a)"), _WAIT.format("(await one(a))"), {"a": 1}),
        lookalike=Example("async def tool(a):\n    return (await a)[0]\n", arguments={"a": 1}),
    ),
)
