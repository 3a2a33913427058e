"""Attributes that a value has not, and calls of no function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.errors import near_misses
from healkit.healing.rules.known import FOREIGN_METHODS
from healkit.healing.rules.records import Example, Fix, Rule
from healkit.healing.rules.sites import Site
from healkit.healing.rules.unbound import renamed_variable
from healkit.pysource.scope import BUILTINS

_TYPES: dict[str, type] = {
    kind.__name__: kind for kind in (str, list, dict, set, tuple, int, float, bytes, bool, frozenset, complex)
}
_OBJECT = r"^'(?P<kind>[\w.]+)' object has no attribute '(?P<name>\w+)'"
_ANY = rf"(?:{_OBJECT}|^module '(?P<module>[\w.]+)' has no attribute '(?P<of_module>\w+)'|^type object '(?P<cls>[\w.]+)' has no attribute '(?P<of_class>\w+)')"


def _wrong(site: Site, name: str) -> list[ast.Attribute]:
    return [node for node in site.nodes(ast.Attribute) if node.attr == name]


def _renamed(site: Site, node: ast.Attribute, right: str) -> Fix:
    edits = site.source.replace(node, f"{site.source.segment(node)[: -len(node.attr)]}{right}")
    return Fix(f"There is no `.{node.attr}` here; there is `.{right}`.", edits)


def _near(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    name = match["name"] or match["of_module"] or match["of_class"]
    kind = _TYPES.get(match["kind"] or "")
    known = [n for n in dir(kind) if not n.startswith("_")] if kind else _own_attributes(site)
    near = [right for right in site.near(name, known) if right.isidentifier()]
    for number, right in enumerate(near):
        for node in _wrong(site, name)[:2]:
            fix = _renamed(site, node, right)
            yield Fix(fix.reason, fix.edits, less=0.05 * number)


def _own_attributes(site: Site) -> list[str]:
    """What the code's own classes have or give their objects."""
    found: dict[str, None] = {}
    for owner in ast.walk(site.source.tree):
        if isinstance(owner, ast.ClassDef):
            for node in ast.walk(owner):
                if isinstance(node, ast.FunctionDef):
                    found[node.name] = None
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    found[node.attr] = None
    return list(found)


def _foreign(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    name, source = match["name"], site.source
    if match["kind"] == "NoneType":
        return
    for node in _wrong(site, name)[:1]:
        call = source.parents[node]
        given = call.args if isinstance(call, ast.Call) and call.func is node else []
        whole = call if isinstance(call, ast.Call) and call.func is node else node
        texts = [source.segment(argument) for argument in given]
        for number, form in enumerate(FOREIGN_METHODS.get(name, ())):
            if not _has(match["kind"], form) or ("{a}" in form or "{0}" in form) > bool(texts):
                continue
            if ("{1}" in form) > (len(texts) > 1):
                continue
            text = form.format(*texts, o=source.atom(node.value), a=", ".join(texts))
            outer = source.parents[whole]
            if not form.startswith(("{o}.", "{o}[", "len(", "str(")) and not isinstance(
                outer, ast.stmt | ast.Call
            ):
                text = f"({text})"
            yield Fix(f"A {match['kind']} has no `.{name}`; in Python it is `{text}`.",
                      source.replace(whole, text), less=0.05 * number)  # fmt: skip


def _has(kind: str, form: str) -> bool:
    """Whether a value of that type has the method that is to be called instead."""
    called = re.match(r"(?:\{o\}|str\(\{o\}\))\.(\w+)", form)
    if called is None:
        return kind != "NoneType"
    owner = str if form.startswith("str(") else _TYPES.get(kind)
    return owner is None or hasattr(owner, called[1])


def _key(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    name = match["name"]
    text = "".join(site.source.lines)
    if name not in site.data_keys() and f'"{name}"' not in text and f"'{name}'" not in text:
        return
    for node in _wrong(site, name)[:1]:
        target = f'{site.source.segment(node.value)}["{name}"]'
        yield Fix(
            f"`{name}` is a key of the dict, and stands in brackets.", site.source.replace(node, target)
        )


def _uncalled(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`text.split[0]`, `for key in d.items:`: the brackets of a call are missing."""
    source = site.source
    methods = {name for kind in _TYPES.values() for name in dir(kind) if not name.startswith("_")}
    own = {n.name: len(n.args.args) for n in ast.walk(source.tree) if isinstance(n, ast.FunctionDef)}
    named: list[ast.Attribute | ast.Name] = [*site.nodes(ast.Attribute), *site.nodes(ast.Name)]
    for node in named:
        called = source.parents[node]
        if isinstance(called, ast.Call) and called.func is node:
            continue
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        if isinstance(node, ast.Attribute) and (name in methods or own.get(name) == 1):
            yield Fix(f"`.{name}` is named and not called.", source.wrap(node, "", "()"))
        elif isinstance(called, ast.Subscript) and called.value is node and (name in own or name in BUILTINS):
            start, end = source.span(node)
            inside = source.segment(called)[end - start :].strip()[1:-1]
            yield Fix(f"`{name}` is a function and is called with round brackets.",
                      source.replace(called, f"{name}({inside})"))  # fmt: skip
        elif isinstance(node, ast.Name) and own.get(name) == 0:
            yield Fix(f"`{name}` is named and not called.", source.wrap(node, "", "()"))


def _no_function(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """Round brackets after a value: it is looked into, it is only read, or its name hides a function."""
    source, kind = site.source, match["kind"]
    for call in site.nodes(ast.Call)[:3]:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in BUILTINS:
            yield from renamed_variable(site, name)
        if len(call.args) == 1 and kind in {"list", "dict", "str", "tuple"} and not call.keywords:
            text = f"{source.segment(call.func)}[{source.segment(call.args[0])}]"
            yield Fix(f"A {kind} is looked into with square brackets.", source.replace(call, text), 0.05)
        if not call.args and not call.keywords:
            yield Fix(
                f"`{source.segment(call.func)}` is a {kind}, no function.",
                source.replace(call, source.segment(call.func)),
            )
        if isinstance(call.func, ast.Constant) and kind in {"int", "float"}:
            start = source.span(call.func)[1]
            text = f"{source.segment(call.func)} * {source.text[start : source.span(call)[1]].strip()}"
            yield Fix(
                "A number before a bracket is not multiplied with it unless `*` says so.",
                source.replace(call, text),
            )


def _near_builtin(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`items.lenght`: what is meant is a function, misspelt besides."""
    name = match["name"]
    for right in near_misses(name, ("length", "size"), 1):
        for node in _wrong(site, name)[:1]:
            if right == name or match["kind"] not in {"list", "str", "dict", "set", "tuple"}:
                continue
            call = site.source.parents[node]
            whole = call if isinstance(call, ast.Call) and call.func is node else node
            yield Fix(f"How long a {match['kind']} is says `len`.",
                      site.source.replace(whole, f"len({site.source.segment(node.value)})"))  # fmt: skip


_TEXT = Example("def tool(a):\n    return a.zzyzx()\n", arguments={"a": "b"})

RULES: tuple[Rule, ...] = (
    Rule(
        name="near_attribute",
        mends="an attribute or a method is misspelt",
        enames=("AttributeError",),
        message=_ANY,
        priority=0.85,
        propose=_near,
        example=Example(
            "def tool(a):\n    found = []\n    found.apend(a)\n    return found\n",
            "def tool(a):\n    found = []\n    found.append(a)\n    return found\n",
            {"a": 1},
        ),
        lookalike=_TEXT,
    ),
    Rule(
        name="foreign_method",
        mends="a method is called as another language calls it",
        enames=("AttributeError",),
        message=_OBJECT,
        priority=0.88,
        propose=_foreign,
        example=Example(
            "def tool(a):\n    return a.substring(1, 3).toUpperCase()\n",
            "def tool(a):\n    return a[1:3].toUpperCase()\n",
            {"a": "bcde"},
        ),
        lookalike=_TEXT,
    ),
    Rule(
        name="dict_attribute",
        mends="a dict's key is asked for with a dot",
        enames=("AttributeError",),
        message=r"^'(?P<kind>dict)' object has no attribute '(?P<name>\w+)'",
        priority=0.9,
        propose=_key,
        example=Example(
            "def tool(row):\n    return row.price * 2\n",
            'def tool(row):\n    return row["price"] * 2\n',
            {"row": {"price": 2}},
        ),
        lookalike=Example("def tool(row):\n    return row.price\n", arguments={"row": {"cost": 2}}),
    ),
    Rule(
        name="near_length",
        mends="the length is asked for as an attribute, misspelt",
        enames=("AttributeError",),
        message=_OBJECT,
        priority=0.7,
        propose=_near_builtin,
        example=Example(
            "def tool(a):\n    return a.lenght\n", "def tool(a):\n    return len(a)\n", {"a": [1]}
        ),
        lookalike=_TEXT,
    ),
    Rule(
        name="uncalled",
        mends="a function or a method is named and not called",
        enames=("TypeError", "AttributeError"),
        message=r"'(?:builtin_function_or_method|method|method_descriptor|function|type)'",
        priority=0.85,
        propose=_uncalled,
        example=Example(
            "def tool(a):\n    return [k for k, v in a.items if v]\n",
            "def tool(a):\n    return [k for k, v in a.items() if v]\n",
            {"a": {"b": 1}},
        ),
        lookalike=Example("def tool(a):\n    return (lambda b: b) + a\n", arguments={"a": 1}),
    ),
    Rule(
        name="no_function",
        mends="a value is called that is no function",
        enames=("TypeError",),
        message=r"'(?P<kind>[\w.]+)' object is not callable",
        priority=0.85,
        propose=_no_function,
        example=Example(
            "def tool(a):\n    list = sorted(a)\n    return list(dict.fromkeys(list))\n",
            "def tool(a):\n    list_value = sorted(a)\n    return list(dict.fromkeys(list_value))\n",
            {"a": ["b", "b"]},
        ),
        lookalike=Example("def tool(a, b):\n    return a(b, b)\n", arguments={"a": 1, "b": 2}),
    ),
)
