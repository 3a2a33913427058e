"""Attributes and methods that an object does not have."""

from __future__ import annotations

import ast
import collections
import re
import sys
from collections.abc import Iterator
from types import ModuleType

from healkit.core.pysource.nodes import type_of
from healkit.errors import near_misses
from healkit.parts.explain.known_names import ALIASES, FOREIGN_METHODS
from healkit.parts.explain.site import Proposal, Site

#: Built-in types by name.
TYPES: dict[str, type] = {
    kind.__name__: kind for kind in (str, list, dict, set, tuple, int, float, bytes, bool, frozenset, complex)
}


def _wrong(site: Site, name: str) -> list[ast.Attribute]:
    return [node for node in site.nodes(ast.Attribute) if node.attr == name]


def _renamed(site: Site, node: ast.Attribute, right: str) -> Proposal:
    edits = site.source.replace(node, f"{site.source.segment(node)[: -len(node.attr)]}{right}")
    return Proposal(f"`.{node.attr}` does not exist here; `.{right}` does.", edits)


def near_attribute(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    yield from _hidden_module(site, name)
    kind = TYPES.get(match.groupdict().get("kind") or "")
    attributes = [n for n in dir(kind) if not n.startswith("_")] if kind else _own_attributes(site)
    near = [right for right in site.near(name, attributes) if right.isidentifier()]
    for number, right in enumerate(near):
        for node in _wrong(site, name)[:2]:
            fix = _renamed(site, node, right)
            yield Proposal(fix.reason, fix.edits, less=0.05 * number)


def _hidden_module(site: Site, name: str) -> Iterator[Proposal]:
    """Import a module again if a variable hides its usual name and the module has the attribute."""
    for node in _wrong(site, name)[:1]:
        variable = node.value.id if isinstance(node.value, ast.Name) else ""
        line = ALIASES.get(variable, "")
        module = line.removeprefix("import ").partition(" as ")[0]
        if (
            site.is_cell
            and line
            and not isinstance(site.given.get(variable), ModuleType)
            and _is_in(module, name)
        ):
            edits = site.source.insert_before(site.source.tree.body[0], line)
            reason = f"A variable `{variable}` hides the module; the import brings it back."
            yield Proposal(reason, edits, kind="restores")


def _is_in(module: str, name: str) -> bool:
    """Return whether a module that is loaded has a name."""
    return hasattr(sys.modules.get(module), name)


def _own_attributes(site: Site) -> list[str]:
    """Return the methods of the code's own classes, and the attributes that it assigns."""
    attributes: dict[str, None] = {}
    for owner in ast.walk(site.source.tree):
        if isinstance(owner, ast.ClassDef):
            for node in ast.walk(owner):
                if isinstance(node, ast.FunctionDef):
                    attributes[node.name] = None
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    attributes[node.attr] = None
    return list(attributes)


def foreign_method(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name, source = match["name"], site.source
    if match["kind"] not in TYPES and match["kind"] not in vars(collections):
        return  # what another class calls so is not known
    for node in _wrong(site, name)[:1]:
        call = source.parents[node]
        arguments = call.args if isinstance(call, ast.Call) and call.func is node else []
        whole = call if isinstance(call, ast.Call) and call.func is node else node
        texts = [source.segment(argument) for argument in arguments]
        for number, form in enumerate(FOREIGN_METHODS.get(name, ())):
            if not _has(match["kind"], form) or ("{a}" in form or "{0}" in form) > bool(texts):
                continue
            if ("{1}" in form) > (len(texts) > 1):
                continue
            if "+ {0}" in form and type_of(arguments[0], site.values) not in ("", "str"):
                continue
            text = form.format(*texts, o=source.atom(node.value), a=", ".join(texts))
            outer = source.parents[whole]
            if not form.startswith(("{o}.", "{o}[", "len(", "str(")) and not isinstance(
                outer, ast.stmt | ast.Call
            ):
                text = f"({text})"
            yield Proposal(f"A {match['kind']} has no `.{name}`; in Python, write `{text}`.",
                      source.replace(whole, text), less=0.05 * number)  # fmt: skip


def _has(kind: str, form: str) -> bool:
    """Return whether a value of that type has the method that the form calls."""
    if "+ {0}" in form and kind != "str":
        return False
    called = re.match(r"(?:\{o\}|str\(\{o\}\))\.(\w+)", form)
    if called is None:
        return kind != "NoneType"
    if form.startswith("str(") and kind not in {"int", "float", "complex"}:
        return False
    owner = str if form.startswith("str(") else TYPES.get(kind)
    return owner is None or hasattr(owner, called[1])


def dict_attribute(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name, keys = match["name"], site.data_keys()
    text = "".join(site.source.lines)
    is_key = name in keys or f'"{name}"' in text or f"'{name}'" in text
    for right in [name] if is_key else near_misses(name, keys, 1):
        for node in _wrong(site, name)[:1]:
            target = f'{site.source.segment(node.value)}["{right}"]'
            yield Proposal(
                f"`{right}` is a key of the dict; use square brackets.", site.source.replace(node, target)
            )


def near_length(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Write `items.lenght` as `len(items)`."""
    name = match["name"]
    for right in near_misses(name, ("length", "size"), 1):
        for node in _wrong(site, name)[:1]:
            if right == name or match["kind"] not in {"list", "str", "dict", "set", "tuple"}:
                continue
            call = site.source.parents[node]
            whole = call if isinstance(call, ast.Call) and call.func is node else node
            yield Proposal(f"Use `len` for the length of a {match['kind']}.",
                      site.source.replace(whole, f"len({site.source.segment(node.value)})"))  # fmt: skip


def trailing_comma(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Remove the comma that made a tuple of one value: `price = 3,`."""
    facts = site.facts
    name = facts.get("owner", "").strip("`")
    for assignment in site.assignments(name) if facts.get("about") == "tuple_by_comma" else ():
        written = assignment.value
        text = site.source.segment(written)
        if isinstance(written, ast.Tuple) and len(written.elts) == 1 and text.endswith(","):
            edits = site.source.replace(written, text[:-1].rstrip())
            yield Proposal(f"The comma turned `{name}` into a tuple, so it is removed.", edits)


def set_on_self(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Set an attribute on the object if `__init__` assigns its name to a local variable."""
    facts = site.facts
    name, kind = facts.get("wanted", "").strip("`"), facts.get("kind", "").strip("`")
    classes = [class_node for class_node in site.all(ast.ClassDef) if class_node.name == kind] if name else []
    methods = [method for owner in classes for method in owner.body if isinstance(method, ast.FunctionDef)]
    for function in (method for method in methods if method.name == "__init__" and method.args.args):
        for line in (statement for statement in function.body if isinstance(statement, ast.Assign)):
            target, first = line.targets[0], function.args.args[0].arg
            if isinstance(target, ast.Name) and target.id == name:
                edits = site.source.replace(target, f"{first}.{name}")
                yield Proposal(
                    f"`__init__` sets `{name}` as a local variable: write `{first}.{name}`.", edits
                )
