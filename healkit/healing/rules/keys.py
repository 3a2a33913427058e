"""Keys of dicts and columns of tables, and names of files."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from healkit.contracts.healing import Edit
from healkit.errors import near_misses
from healkit.healing.rules.records import Example, Fix, Rule
from healkit.healing.rules.sites import Site
from healkit.pysource.inference import type_of

_COLUMN = re.compile(
    r"Column not found: '?(?P<a>.+?)'?\Z|\['(?P<b>[^']+)'\] not in index|None of \[Index\(\['(?P<c>[^']+)'|\A'(?!Column not found)(?P<d>.+)'\Z"
)
_ENTRIES_MAX = 2000


def _asked(site: Site) -> str:
    """The key of text that was not found."""
    match = _COLUMN.search(site.failure.evalue if site.failure else "")
    return next(filter(None, match.groups()), "") if match else ""


def _constants(site: Site, text: str) -> list[ast.Constant]:
    """Where that text stands: in the failing statement, else anywhere in the code."""
    here = [n for n in site.nodes(ast.Constant, near=False) if n.value == text]
    return here or [n for n in ast.walk(site.source.tree) if isinstance(n, ast.Constant) and n.value == text]


def _quoted(site: Site, node: ast.Constant, text: str) -> str:
    """The text between the quotation marks that the writer uses there."""
    mark = site.source.segment(node)[-1]
    return f"{mark}{text}{mark}" if mark in "'\"" and not set(text) & set("'\"\\\n") else repr(text)


def _near(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    wrong = _asked(site)
    known = [k for k in [*(site.failure.known if site.failure else ()), *site.data_keys()] if k != wrong]
    written = [
        n.value
        for n in ast.walk(site.source.tree)
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    near = site.near(wrong, known) or near_misses(
        wrong, [w for w in written if w.isidentifier() and w != wrong]
    )
    related = [k for k in known if wrong and (wrong in k or k in wrong)]
    for number, right in enumerate(dict.fromkeys([*near, *related])):
        for node in _constants(site, wrong)[:1]:
            edits = site.source.replace(node, _quoted(site, node, right))
            yield Fix(f"There is no key {wrong!r}; there is {right!r}.", edits, less=0.05 * number)


def _subscripts(site: Site) -> list[ast.Subscript]:
    found = site.nodes(ast.Subscript)
    return [n for n in found if not isinstance(n.slice, ast.Slice | ast.Tuple)][:3]


def _counted(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`votes[name] += 1` reads before it writes: at the first time there is nothing to read."""
    source, statement = site.source, site.statement
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript):
        base, key = source.segment(statement.target.value), source.segment(statement.target.slice)
        start = _start(site, statement.op, statement.value)
        at, end = source.span(statement)
        sign = source.text[source.span(statement.target)[1] : source.span(statement.value)[0]].strip()[:-1]
        text = f"{base}[{key}] = {base}.get({key}, {start}) {sign} {source.segment(statement.value)}"
        yield Fix(f"A key that is not there yet counts as {start}.", [Edit(at, end, text)])
        return
    starts = {
        "append": "[]",
        "extend": "[]",
        "insert": "[]",
        "add": "set()",
        "update": "{}",
        "setdefault": "{}",
    }
    for call in site.nodes(ast.Call, near=False):
        match call.func:
            case ast.Attribute(value=ast.Subscript(value=owner, slice=key_node) as place, attr=attr) if (
                attr in starts
            ):
                text = f"{source.segment(owner)}.setdefault({source.segment(key_node)}, {starts[attr]})"
                yield Fix(
                    f"A key that is not there yet begins as {starts[attr]}.", source.replace(place, text)
                )
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        target = statement.targets[0]
        inner = [
            n for n in _subscripts(site) if source.segment(n) == source.segment(target) and n is not target
        ]
        for node in inner[:1]:
            text = f"{source.segment(node.value)}.get({source.segment(node.slice)}, 0)"
            yield Fix("A key that is not there yet counts as 0.", source.replace(node, text))
        if isinstance(target.value, ast.Subscript):
            place = target.value
            text = f"{source.segment(place.value)}.setdefault({source.segment(place.slice)}, {{}})"
            yield Fix("A key that is not there yet begins as {}.", source.replace(place, text))


def _start(site: Site, op: ast.operator, value: ast.expr) -> str:
    kind = type_of(value, site.values)
    if isinstance(op, ast.BitOr):
        return "set()" if kind == "set" else "0"
    if isinstance(op, ast.Mult):
        return "1"
    return {"str": '""', "list": "[]", "float": "0.0"}.get(kind, "0")


def _other_kind(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """Keys that came from JSON are text: 12 is not "12"."""
    wanted = site.failure.evalue if site.failure else ""
    number = re.fullmatch(r"-?\d+", wanted) is not None
    text = re.fullmatch(r"'-?\d+'", wanted) is not None
    if not number and not text:
        return
    known = [*(site.failure.known if site.failure else ()), *site.data_keys()]
    if number and known and wanted not in known:
        return
    for node in _subscripts(site)[:2]:
        kind = "str" if number else "int"
        edits = site.source.replace(node.slice, f"{kind}({site.source.segment(node.slice)})")
        yield Fix(f"The keys are of another type: `{kind}(…)` of what is looked up.", edits)


def _or_default(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """What is right for a missing key, where it is known for these arguments; a guess otherwise."""
    source = site.source
    returned = isinstance(site.statement, ast.Return)
    for node in _subscripts(site)[:1]:
        if not isinstance(node.ctx, ast.Load):
            continue
        parent = source.parents[node]
        owner, key = source.segment(node.value), source.segment(node.slice)
        demanded = site.demanded("") if returned and parent is site.statement else []
        for value in demanded:
            text = f"{owner}.get({key}, {value!r})"
            yield Fix(f"For a key that is not there, {value!r} is right.", source.replace(node, text))
        if not demanded:
            text = f"{owner}.get({key})"
            yield Fix("A key that is not there gives None.", source.replace(node, text), guard=True)


def _file(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A file of nearly that name in a folder that the tool is granted, or of that name in another one."""
    wrong = match["path"]
    folder, name = os.path.split(wrong)
    files = [path for root in site.case.entry.grants.read for path in _files(Path(root))]
    nodes = _constants(site, wrong) or [n for n in _constants(site, name) if name]
    if not nodes:
        return
    same = [path for path in files if path.name == name]
    near = site.near(name, [path.name for path in files])
    rights = [str(path) for path in same if str(path) != wrong]
    for right in near:
        here = nodes[0].value != wrong or Path(folder or ".").joinpath(right) in files or not files
        found = next((str(path) for path in files if path.name == right), right)
        rights.append((right if nodes[0].value == name else str(Path(folder) / right)) if here else found)
    for number, right in enumerate(dict.fromkeys(rights)):
        edits = site.source.replace(nodes[0], _quoted(site, nodes[0], right))
        yield Fix(f"There is no file {wrong!r}; there is {right!r}.", edits, less=0.05 * number)


def _files(root: Path) -> list[Path]:
    """The files of a granted folder, two levels deep; the file itself where one file is granted."""
    if root.is_file():
        return [root]
    found: list[Path] = []
    try:
        for pattern in ("*", "*/*"):
            for path in root.glob(pattern):
                found.append(path)
                if len(found) >= _ENTRIES_MAX:
                    return found
    except OSError:  # a folder that is gone, or closed
        return found
    return [path for path in found if path.is_file()]


_UNKNOWN = Example("def tool(a):\n    return a['zzyzx']\n", arguments={"a": {"b": 1}})

RULES: tuple[Rule, ...] = (
    Rule(
        name="near_key",
        mends="a key or a column is misspelt",
        enames=("KeyError",),
        priority=0.88,
        propose=_near,
        example=Example(
            "def tool(rows):\n    return sum(row['unit'] for row in rows)\n",
            "def tool(rows):\n    return sum(row['units'] for row in rows)\n",
            {"rows": [{"units": 2}]},
        ),
        lookalike=_UNKNOWN,
    ),
    Rule(
        name="counted",
        mends="a key that is not there yet is added to",
        enames=("KeyError",),
        priority=0.9,
        propose=_counted,
        example=Example(
            "def tool(a):\n    votes = {}\n    for n in a:\n        votes[n] += 1  # one more\n    return votes\n",
            "def tool(a):\n    votes = {}\n    for n in a:\n        votes[n] = votes.get(n, 0) + 1  # one more\n    return votes\n",
            {"a": ["b"]},
        ),
        lookalike=_UNKNOWN,
    ),
    Rule(
        name="other_kind_of_key",
        mends="a number is looked up where the keys are text, or the other way round",
        enames=("KeyError",),
        priority=0.85,
        propose=_other_kind,
        example=Example(
            "def tool(plan, seat):\n    return plan[seat]\n",
            "def tool(plan, seat):\n    return plan[str(seat)]\n",
            {"plan": {"12": "Ada"}, "seat": 12},
        ),
        lookalike=Example(
            "def tool(plan, seat):\n    return plan[seat]\n", arguments={"plan": {"12": 1}, "seat": 13}
        ),
    ),
    Rule(
        name="key_default",
        mends="what is right for a missing key is not said",
        enames=("KeyError",),
        priority=0.75,
        propose=_or_default,
        example=Example(
            "def tool(a, b):\n    return a[b]\n",
            "def tool(a, b):\n    return a.get(b, 'free')\n",
            {"a": {"c": "Ada"}, "b": "d"},
            right="free",
        ),
        lookalike=Example("def tool(a, b):\n    a.pop(b)\n    return a\n", arguments={"a": {}, "b": "c"}),
    ),
    Rule(
        name="near_file",
        mends="a file's name is misspelt, or its folder is missing",
        enames=("FileNotFoundError",),
        message=r"No such file or directory: '(?P<path>.+)'",
        priority=0.85,
        propose=_file,
        example=Example(
            "def tool():\n    with open('{folder}/prises.csv') as file:\n        return file.read()\n",
            "def tool():\n    with open('{folder}/prices.csv') as file:\n        return file.read()\n",
        ),
        lookalike=Example(
            "def tool():\n    with open('{folder}/zzyzx') as file:\n        return file.read()\n"
        ),
    ),
)
