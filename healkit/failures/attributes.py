"""Attributes that an object lacks, and calls of non-functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.errors import near_misses
from healkit.failures.known_names import FOREIGN_METHODS
from healkit.failures.modules import BESIDE_THE_CLASS, OTHER_MODULES
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site
from healkit.failures.unbound import renamed_variable
from healkit.pysource.scope import BUILTINS

_TYPES: dict[str, type] = {
    kind.__name__: kind for kind in (str, list, dict, set, tuple, int, float, bytes, bool, frozenset, complex)
}


def _wrong(site: Site, name: str) -> list[ast.Attribute]:
    return [node for node in site.nodes(ast.Attribute) if node.attr == name]


def _renamed(site: Site, node: ast.Attribute, right: str) -> Proposal:
    edits = site.source.replace(node, f"{site.source.segment(node)[: -len(node.attr)]}{right}")
    return Proposal(f"There is no `.{node.attr}` here; there is `.{right}`.", edits)


def _near(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    kind = _TYPES.get(match.groupdict().get("kind") or "")
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


def _foreign(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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
            yield Proposal(f"A {match['kind']} has no `.{name}`; in Python it is `{text}`.",
                      source.replace(whole, text), less=0.05 * number)  # fmt: skip


def _has(kind: str, form: str) -> bool:
    """Return whether a value of that type has the method that the form calls."""
    called = re.match(r"(?:\{o\}|str\(\{o\}\))\.(\w+)", form)
    if called is None:
        return kind != "NoneType"
    owner = str if form.startswith("str(") else _TYPES.get(kind)
    return owner is None or hasattr(owner, called[1])


def _key(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    text = "".join(site.source.lines)
    if name not in site.data_keys() and f'"{name}"' not in text and f"'{name}'" not in text:
        return
    for node in _wrong(site, name)[:1]:
        target = f'{site.source.segment(node.value)}["{name}"]'
        yield Proposal(
            f"`{name}` is a key of the dict, and stands in brackets.", site.source.replace(node, target)
        )


def _uncalled(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Add the missing parentheses of a call: `text.split[0]`, `for key in d.items:`."""
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
            yield Proposal(f"`.{name}` is named and not called.", source.wrap(node, "", "()"))
        elif isinstance(called, ast.Subscript) and called.value is node and (name in own or name in BUILTINS):
            start, end = source.span(node)
            inside = source.segment(called)[end - start :].strip()[1:-1]
            yield Proposal(f"`{name}` is a function and is called with round brackets.",
                      source.replace(called, f"{name}({inside})"))  # fmt: skip
        elif isinstance(node, ast.Name) and own.get(name) == 0:
            yield Proposal(f"`{name}` is named and not called.", source.wrap(node, "", "()"))


def _no_function(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Replace a call of what is not a function: index it, only read it, or rename what hides the function."""
    source, kind = site.source, match["kind"]
    for call in site.nodes(ast.Call)[:3]:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in BUILTINS:
            yield from renamed_variable(site, name)
        if len(call.args) == 1 and kind in {"list", "dict", "str", "tuple"} and not call.keywords:
            text = f"{source.segment(call.func)}[{source.segment(call.args[0])}]"
            yield Proposal(f"A {kind} is looked into with square brackets.", source.replace(call, text), 0.05)
        if not call.args and not call.keywords:
            yield Proposal(
                f"`{source.segment(call.func)}` is a {kind}, no function.",
                source.replace(call, source.segment(call.func)),
            )
        if isinstance(call.func, ast.Constant) and kind in {"int", "float"}:
            start = source.span(call.func)[1]
            text = f"{source.segment(call.func)} * {source.text[start : source.span(call)[1]].strip()}"
            yield Proposal(
                "A number before a bracket is not multiplied with it unless `*` says so.",
                source.replace(call, text),
            )


def _near_builtin(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Write `items.lenght` as `len(items)`."""
    name = match["name"]
    for right in near_misses(name, ("length", "size"), 1):
        for node in _wrong(site, name)[:1]:
            if right == name or match["kind"] not in {"list", "str", "dict", "set", "tuple"}:
                continue
            call = site.source.parents[node]
            whole = call if isinstance(call, ast.Call) and call.func is node else node
            yield Proposal(f"How long a {match['kind']} is says `len`.",
                      site.source.replace(whole, f"len({site.source.segment(node.value)})"))  # fmt: skip


_TEXT = FixExample("def tool(a):\n    return a.zzyzx()\n", arguments={"a": "b"})


_NEAR_ATTRIBUTE = Fix(
    name="near_attribute",
    mends="an attribute or a method is misspelt",
    only=r"^(?:'|module|type object)",
    priority=0.85,
    propose=_near,
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
                what="`.{name}` is asked of `None`, and `None` has nothing of that kind.",
                why=(
                    "Something that was expected to give an object gave `None`: a function without `return`, a search that found "
                    "nothing, or a method that changes its object in place (`list.sort`, `list.append`) and returns nothing."
                ),
                hint="Which call in this line, or above it, gave `None`?",
                fix="Look at what stands before `.{name}`; test it with `if … is not None:` if nothing found is a normal case.",
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
                why="It has something much like it: {near}.",
                hint="Compare the spelling.",
                fix="If {near} was meant, write that in the place of `{name}`.",
                needs="near",
                example="'text'.uper()",
            ),
            ExplanationText(
                "attribute_dict",
                what="A dict has no attribute `{name}`.",
                why="What a dict holds is found by its key in brackets. A dot asks for a method of the dict itself.",
                hint="Is `{name}` a key of the dict?",
                fix='Write `["{name}"]` in the place of `.{name}`.',
                example="{'zzyzx': 1}.zzyzx",
                only=r"'dict' object",
            ),
            ExplanationText(
                "attribute",
                what="{kind}{module}{cls} has no `{name}`.",
                why="The value is of another kind than the line expects, or the name has changed with the library's version.",
                hint="What does `type(…)` say of the value before `.{name}`?",
                fix="Look at `dir(…)` of the value for what it has.",
                example="(3).zzyzx",
            ),
        ),
        fixes=(
            *OTHER_MODULES,
            _NEAR_ATTRIBUTE,
            Fix(
                name="foreign_method",
                mends="a method is called as another language calls it",
                only=r"^'",
                priority=0.88,
                propose=_foreign,
                example=FixExample(
                    "def tool(a):\n    return a.substring(1, 3).toUpperCase()\n",
                    "def tool(a):\n    return a[1:3].toUpperCase()\n",
                    {"a": "bcde"},
                ),
                lookalike=_TEXT,
            ),
            Fix(
                name="dict_attribute",
                mends="a dict's key is asked for with a dot",
                only=r"^'dict' object",
                priority=0.9,
                propose=_key,
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
                mends="the length is asked for as an attribute, misspelt",
                only=r"^'",
                priority=0.7,
                propose=_near_builtin,
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
    FailurePattern(
        ("TypeError", "AttributeError"),
        r"'(?:builtin_function_or_method|method|method_descriptor|function|type)'",
        fixes=(
            Fix(
                name="uncalled",
                mends="a function or a method is named and not called",
                priority=0.85,
                propose=_uncalled,
                example=FixExample(
                    "def tool(a):\n    return [k for k, v in a.items if v]\n",
                    "def tool(a):\n    return [k for k, v in a.items() if v]\n",
                    {"a": {"b": 1}},
                ),
                lookalike=FixExample("def tool(a):\n    return (lambda b: b) + a\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>[\w.]+)' object is not callable",
        explanations=(
            ExplanationText(
                "not_callable_shadow",
                what="Round brackets come after a `{kind}`, as if it were a function.",
                why=(
                    "Either a variable has taken the name of a function (`list = …`, `sum = …`), or an operator or comma is missing "
                    "before the bracket, or square brackets were meant."
                ),
                hint="What does the name before the bracket stand for at this line?",
                fix="Give the variable another name (`del list` brings Python's own back), or write `[…]` to look something up.",
                only=r"'(?:list|dict|str|int|float|set|tuple|bool|DataFrame|Series|module)' object",
                example="list = [1]\nlist('ab')",
            ),
            ExplanationText(
                "not_callable",
                what="Round brackets come after a `{kind}`, and that cannot be called.",
                why="What stands before the bracket is not a function: often it is the outcome of one.",
                hint="Is there one pair of brackets too many?",
                fix="Take the brackets away, or call what gives the function.",
                example="None()",
            ),
        ),
        fixes=(
            Fix(
                name="no_function",
                mends="a value is called that is no function",
                priority=0.85,
                propose=_no_function,
                example=FixExample(
                    "def tool(a):\n    list = sorted(a)\n    return list(dict.fromkeys(list))\n",
                    "def tool(a):\n    list_value = sorted(a)\n    return list(dict.fromkeys(list_value))\n",
                    {"a": ["b", "b"]},
                ),
                lookalike=FixExample("def tool(a, b):\n    return a(b, b)\n", arguments={"a": 1, "b": 2}),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"'(?P<kind>builtin_function_or_method|method|function|type)' object is not subscriptable",
        explanations=(
            ExplanationText(
                "method_subscript",
                what="Square brackets come after a function.",
                why="A function is called with round brackets; square ones look something up.",
                hint="Which of the two was meant?",
                fix="Write `(…)`, or put the brackets after the call.",
                example="'text'.split[0]",
            ),
        ),
    ),
)
