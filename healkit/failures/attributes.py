"""Attributes and methods that an object does not have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.errors import near_misses
from healkit.failures.imports import BESIDE_THE_CLASS, FOREIGN_METHODS, OTHER_MODULES
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site

#: Built-in types by name.
TYPES: dict[str, type] = {
    kind.__name__: kind for kind in (str, list, dict, set, tuple, int, float, bytes, bool, frozenset, complex)
}


def _wrong(site: Site, name: str) -> list[ast.Attribute]:
    return [node for node in site.nodes(ast.Attribute) if node.attr == name]


def _renamed(site: Site, node: ast.Attribute, right: str) -> Proposal:
    edits = site.source.replace(node, f"{site.source.segment(node)[: -len(node.attr)]}{right}")
    return Proposal(f"`.{node.attr}` does not exist here; `.{right}` does.", edits)


def _near_attribute(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    kind = TYPES.get(match.groupdict().get("kind") or "")
    known = [n for n in dir(kind) if not n.startswith("_")] if kind else _own_attributes(site)
    near = [right for right in site.near(name, known) if right.isidentifier()]
    for number, right in enumerate(near):
        for node in _wrong(site, name)[:2]:
            fix = _renamed(site, node, right)
            yield Proposal(fix.reason, fix.edits, less=0.05 * number)


def _own_attributes(site: Site) -> list[str]:
    """Return the methods of the code's own classes, and the attributes that it assigns."""
    found: dict[str, None] = {}
    for owner in ast.walk(site.source.tree):
        if isinstance(owner, ast.ClassDef):
            for node in ast.walk(owner):
                if isinstance(node, ast.FunctionDef):
                    found[node.name] = None
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    found[node.attr] = None
    return list(found)


def _foreign_method(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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
            yield Proposal(f"A {match['kind']} has no `.{name}`; in Python, write `{text}`.",
                      source.replace(whole, text), less=0.05 * number)  # fmt: skip


def _has(kind: str, form: str) -> bool:
    """Return whether a value of that type has the method that the form calls."""
    called = re.match(r"(?:\{o\}|str\(\{o\}\))\.(\w+)", form)
    if called is None:
        return kind != "NoneType"
    owner = str if form.startswith("str(") else TYPES.get(kind)
    return owner is None or hasattr(owner, called[1])


def _dict_attribute(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    text = "".join(site.source.lines)
    if name not in site.data_keys() and f'"{name}"' not in text and f"'{name}'" not in text:
        return
    for node in _wrong(site, name)[:1]:
        target = f'{site.source.segment(node.value)}["{name}"]'
        yield Proposal(
            f"`{name}` is a key of the dict; use square brackets.", site.source.replace(node, target)
        )


def _near_length(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


_TEXT = FixExample("def tool(a):\n    return a.zzyzx()\n", arguments={"a": "b"})


_NEAR_ATTRIBUTE = Fix(
    name="near_attribute",
    mistake="a misspelt attribute or method",
    only=r"^(?:'|module|type object)",
    priority=0.85,
    propose=_near_attribute,
    example=FixExample(
        "def tool(a):\n    found = []\n    found.apend(a)\n    return found\n",
        "def tool(a):\n    found = []\n    found.append(a)\n    return found\n",
        {"a": 1},
    ),
    lookalike=_TEXT,
)

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("AttributeError",),
        r"'NoneType' object has no attribute '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "attribute_of_none",
                what="The code uses `.{name}` on `None`, which has no such attribute.",
                why=(
                    "A value that should be an object is `None`. Common causes: a function without "
                    "`return`, a search that found nothing, or a method that changes its object in "
                    "place (`list.sort`, `list.append`) and returns nothing."
                ),
                hint="Which call in this line, or above it, returned `None`?",
                fix=(
                    "Check the value before `.{name}`; use `if … is not None:` if finding nothing is a "
                    "normal case."
                ),
                example="import re\nre.match('a', 'b').group()",
            ),
        ),
    ),
    FailurePattern(
        ("AttributeError",),
        r"(?:'(?P<kind>[\w.]+)' object|module '(?P<module>[\w.]+)'|type object '(?P<cls>\w+)') has no attribute '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "attribute_near",
                what="{kind}{module}{cls} has no `{name}`.",
                why="A similar name exists: {near}.",
                hint="Compare the spelling.",
                fix="If you mean {near}, write that instead of `{name}`.",
                needs="near",
                example="'text'.uper()",
            ),
            ExplanationText(
                "attribute_dict",
                what="A dict has no attribute `{name}`.",
                why=(
                    "The items of a dict are looked up by key in square brackets. A dot looks for an "
                    "attribute or a method of the dict itself."
                ),
                hint="Is `{name}` a key of the dict?",
                fix='Write `["{name}"]` instead of `.{name}`.',
                example="{'zzyzx': 1}.zzyzx",
                only=r"'dict' object",
            ),
            ExplanationText(
                "attribute",
                what="{kind}{module}{cls} has no `{name}`.",
                why=(
                    "The value has a different type than this line expects, or the library has renamed the "
                    "attribute."
                ),
                hint="What does `type(…)` say about the value before `.{name}`?",
                fix="Use `dir(…)` to list the attributes of the value.",
                example="(3).zzyzx",
            ),
        ),
        fixes=(
            *OTHER_MODULES,
            _NEAR_ATTRIBUTE,
            Fix(
                name="foreign_method",
                mistake="a method name from another language",
                only=r"^'",
                priority=0.88,
                propose=_foreign_method,
                example=FixExample(
                    "def tool(a):\n    return a.substring(1, 3).toUpperCase()\n",
                    "def tool(a):\n    return a[1:3].toUpperCase()\n",
                    {"a": "bcde"},
                ),
                lookalike=_TEXT,
            ),
            Fix(
                name="dict_attribute",
                mistake="a dict key that is accessed with a dot",
                only=r"^'dict' object",
                priority=0.9,
                propose=_dict_attribute,
                example=FixExample(
                    "def tool(row):\n    return row.price * 2\n",
                    'def tool(row):\n    return row["price"] * 2\n',
                    {"row": {"price": 2}},
                ),
                lookalike=FixExample(
                    "def tool(row):\n    return row.price\n", arguments={"row": {"cost": 2}}
                ),
            ),
            Fix(
                name="near_length",
                mistake="a misspelt length attribute",
                only=r"^'",
                priority=0.7,
                propose=_near_length,
                example=FixExample(
                    "def tool(a):\n    return a.lenght\n", "def tool(a):\n    return len(a)\n", {"a": [1]}
                ),
                lookalike=_TEXT,
            ),
        ),
    ),
    FailurePattern(
        ("AttributeError",),
        r"type object '(?P<cls>\w+(?:\.\w+)+)' has no attribute '(?P<name>\w+)'",
        fixes=(
            BESIDE_THE_CLASS,
            _NEAR_ATTRIBUTE,
        ),
    ),
)
