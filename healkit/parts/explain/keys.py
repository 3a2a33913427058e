"""Keys that a dict or a table does not have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import type_of
from healkit.errors import near_misses
from healkit.parts.explain.site import Proposal, Site

#: Messages about a column, with its name as a group, each with an example.
COLUMN_MESSAGES = {
    r"Column not found: '?(.+?)'?\Z": "Column not found: 'a'",
    r"\['([^']+)'\] (?:not in index|do not exist|not found in axis)": "['a'] not in index",
    r"None of \[Index\(\['([^']+)'": "None of [Index(['a'], dtype='object')] are in the [columns]",
    r"\A'(?!Column not found)(.+)'\Z": "'a'",
}
_COLUMN = re.compile("|".join(COLUMN_MESSAGES))


def _asked(site: Site) -> str:
    """Return the text key that was not found."""
    if wanted := _fact(site, "wanted"):
        return wanted
    match = _COLUMN.search(site.message)
    return next(filter(None, match.groups()), "") if match else ""


def _fact(site: Site, name: str) -> str:
    """Return a key or a column that the facts of the failure name; empty where they name none."""
    facts = site.facts
    if not facts.get("about", "").startswith(("column", "key")):
        return ""
    try:
        value = ast.literal_eval(facts.get(name, "").strip("`"))
    except (SyntaxError, ValueError):
        return ""
    return value if isinstance(value, str) else ""


def constants(site: Site, text: str) -> list[ast.Constant]:
    """Return the constants with that text: in the failing statement, else anywhere in the code."""
    here = [n for n in site.nodes(ast.Constant, near=False) if n.value == text]
    return here or [node for node in site.all(ast.Constant) if node.value == text]


def quoted(site: Site, node: ast.Constant, text: str) -> str:
    """Write a text in the quotation marks of a constant."""
    mark = site.source.segment(node)[-1]
    return f"{mark}{text}{mark}" if mark in "'\"" and not set(text) & set("'\"\\\n") else repr(text)


def near_key(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    wrong = _asked(site)
    keys = [k for k in [*(site.failure.known if site.failure else ()), *site.data_keys()] if k != wrong]
    written = [node.value for node in site.all(ast.Constant) if isinstance(node.value, str)]
    suggestion = _fact(site, "found")
    near = (
        [suggestion]
        if suggestion
        else site.near(wrong, keys)
        or near_misses(wrong, [w for w in written if w.isidentifier() and w != wrong])
    )
    related = [k for k in keys if _words(wrong) & _words(k)]
    kind, read = "column" if _is_column(site) else "key", _read(site, wrong)
    for number, right in enumerate(dict.fromkeys([*near, *related])):
        here = [node for node in site.nodes(ast.Constant, near=False) if node.value == wrong]
        first, every = constants(site, wrong)[:1], here if len(here) > 1 else []
        # What the same owner is asked for again is as wrong there.
        again = len({_owner(site, node) for node in here}) == 1
        for less, nodes in enumerate(filter(None, (every, first) if again else (first, every))):
            edits = [edit for node in nodes for edit in site.source.replace(node, quoted(site, node, right))]
            text = f"The {kind} {wrong!r} does not exist; {right!r} does."
            yield Proposal(text, edits, less=0.05 * number + 0.01 * less)
        if len(read) > 1:
            edits = [edit for node in read for edit in site.source.replace(node, quoted(site, node, right))]
            text = f"The {kind} {wrong!r} does not exist; {right!r} does. It is used in {len(read)} places."
            yield Proposal(text, edits, less=0.05 * number + 0.02)


def _owner(site: Site, node: ast.AST) -> str:
    """Return the text of the object that is indexed: `table.loc` for a label in `table.loc["a", "b"]`."""
    place: ast.AST | None = node
    while place is not None and not isinstance(place, ast.Subscript):
        place = site.source.parents.get(place)
    return "" if place is None else site.source.segment(place.value)


def _words(name: str) -> set[str]:
    return set(re.split(r"[\W_]+", name.casefold())) - {""}


def _is_column(site: Site) -> bool:
    """Return whether the failure is about a column of a table."""
    return "column" in site.facts.get("about", "")


def _read(site: Site, text: str) -> list[ast.Constant]:
    """Return the constants with that text that are used as keys: `row["a"]`, `table.sort_values(["a"])`."""
    nodes = []
    for node in site.all(ast.Constant):
        if node.value != text:
            continue
        place: ast.AST | None = site.source.parents.get(node)
        while isinstance(place, ast.List | ast.Tuple | ast.keyword):
            place = site.source.parents.get(place)
        if isinstance(place, ast.Call) or (
            isinstance(place, ast.Subscript) and isinstance(place.ctx, ast.Load)
        ):
            nodes.append(node)
    return nodes


def _subscripts(site: Site) -> list[ast.Subscript]:
    nodes = site.nodes(ast.Subscript)
    return [n for n in nodes if not isinstance(n.slice, ast.Slice | ast.Tuple)][:3]


def counted(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Give a key its first value before the code adds to it: `votes[name] += 1` reads before it writes."""
    source, statement = site.source, site.statement
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript):
        base, key = source.segment(statement.target.value), source.segment(statement.target.slice)
        start = _start(site, statement.op, statement.value)
        at, end = source.span(statement)
        sign = source.text[source.span(statement.target)[1] : source.span(statement.value)[0]].strip()[:-1]
        text = f"{base}[{key}] = {base}.get({key}, {start}) {sign} {source.segment(statement.value)}"
        yield Proposal(f"For a missing key, start with {start}.", [Edit(at, end, text)])
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
                yield Proposal(f"For a missing key, start with {starts[attr]}.", source.replace(place, text))
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        target = statement.targets[0]
        inner = [
            n for n in _subscripts(site) if source.segment(n) == source.segment(target) and n is not target
        ]
        for node in inner[:1]:
            text = f"{source.segment(node.value)}.get({source.segment(node.slice)}, 0)"
            message = f"Uses 0 in every row, because there is no column {source.segment(node.slice)}."
            reason = (
                message
                if hasattr(site.given.get(source.segment(node.value)), "columns")
                else "For a missing key, start with 0."
            )
            yield Proposal(reason, source.replace(node, text))
        if isinstance(target.value, ast.Subscript):
            place = target.value
            text = f"{source.segment(place.value)}.setdefault({source.segment(place.slice)}, {{}})"
            yield Proposal("For a missing key, start with {}.", source.replace(place, text))


def _start(site: Site, op: ast.operator, value: ast.expr) -> str:
    kind = type_of(value, site.values)
    if isinstance(op, ast.BitOr):
        return "set()" if kind == "set" else "0"
    if isinstance(op, ast.Mult):
        return "1"
    return {"str": '""', "list": "[]", "float": "0.0"}.get(kind, "0")


def other_kind_of_key(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Look up text for a number, or a number for text: keys that came from JSON are text."""
    wanted = site.message
    number = re.fullmatch(r"-?\d+", wanted) is not None
    text = re.fullmatch(r"'-?\d+'", wanted) is not None
    if not number and not text:
        return
    keys = [*(site.failure.known if site.failure else ()), *site.data_keys()]
    if number and keys and wanted not in keys:
        return
    rows = [
        n.slice.elts[0] for n in site.nodes(ast.Subscript) if isinstance(n.slice, ast.Tuple) and n.slice.elts
    ]
    for key in [*(node.slice for node in _subscripts(site)[:2]), *rows[:1]]:
        kind = "str" if number else "int"
        edits = site.source.replace(key, f"{kind}({site.source.segment(key)})")
        yield Proposal(f"The keys have another type: convert with `{kind}(…)`.", edits)


def key_default(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use `get` with the known result for a missing key; None as a guard where it is not known."""
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
            yield Proposal(f"For a missing key, use {value!r}.", source.replace(node, text))
        if not demanded and not _is_column(site):
            text = f"{owner}.get({key})"
            yield Proposal("For a missing key, use None.", source.replace(node, text), guard=True)


def json_key(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Look up text if the code looks for a number among keys from JSON."""
    numbers = {key for key in site.data_keys() if key.lstrip("-").isdigit()}
    values = [value for check in site.inputs for value in check.arguments.values()]
    integer_texts = {str(value) for value in values if isinstance(value, int) and not isinstance(value, bool)}
    if not numbers & integer_texts:
        return
    names = {name for name, value in site.arguments.items() if isinstance(value, int)}
    for node in ast.walk(site.source.tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            match node.value:
                case ast.Subscript(slice=ast.Constant(value=str(name))) if name in names:
                    yield Proposal("Keys from JSON are strings.", site.source.wrap(node.value, "str(", ")"))
    uses = [
        node
        for node in ast.walk(site.source.tree)
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
        and isinstance(site.source.parents[node], ast.Subscript | ast.Compare | ast.Call)
    ]  # fmt: skip
    if uses:
        edits = [edit for node in uses for edit in site.source.wrap(node, "str(", ")")]
        yield Proposal("Keys from JSON are strings.", edits)


def valid_value(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Write the value that a library suggests, or the nearest of the valid ones."""
    wrong = match["wrong"]
    options = re.findall(r"'([^']+)'", match["known"])
    near = options[:1] if match["suggested"] else near_misses(wrong, options, 1)
    for node in constants(site, wrong)[:1]:
        for right in near:
            reason = f"{wrong!r} is not a valid value here; {right!r} is."
            yield Proposal(reason, site.source.replace(node, quoted(site, node, right)))
