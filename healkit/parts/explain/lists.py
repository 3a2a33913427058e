"""Lists and loops: indexes, wrong kinds, iteration."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import called_name, type_of, value_of
from healkit.parts.explain.site import Proposal, Site


def whole_index(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Make a whole number where a float is not allowed: `/` gives a float even for 4 / 2."""
    source = site.source
    wholes: list[ast.expr] = [
        part
        for node in site.nodes(ast.Subscript)
        for part in (
            [node.slice] if not isinstance(node.slice, ast.Slice) else [node.slice.lower, node.slice.upper]
        )
        if part is not None
    ]
    wholes += [
        argument
        for call in site.nodes(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id in {"range", "chr", "islice", "bin", "hex"}
        for argument in call.args
    ]
    wholes += [
        side
        for node in site.nodes(ast.BinOp)
        if isinstance(node.op, ast.Mult)
        for side in (node.left, node.right)
    ]
    visited: set[int] = set()
    for whole in wholes:
        for origin in [m for part in ast.walk(whole) if isinstance(part, ast.expr) for m in site.made(part)]:
            for division in ast.walk(origin):
                if (
                    not isinstance(division, ast.BinOp)
                    or not isinstance(division.op, ast.Div)
                    or id(division) in visited
                ):
                    continue
                visited.add(id(division))
                start, end = source.span(division.left)[1], source.span(division.right)[0]
                at = source.text.index("/", start, end)
                yield Proposal(
                    "`/` always returns a float; `//` returns an integer.", [Edit(at, at + 1, "//")]
                )
    for whole in wholes[:3]:
        if type_of(whole, site.values) not in {"int", "str"}:
            yield Proposal("The number must be an integer.", source.wrap(whole, "int(", ")"), less=0.15)


def text_index(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the item itself, or the number that the text holds, where a list is indexed by text."""
    source = site.source
    for node in site.nodes(ast.Subscript)[:2]:
        loop = source.enclosing(node, ast.For)
        key, base = source.segment(node.slice), source.segment(node.value)
        if loop is not None and source.segment(loop.target) == key and source.segment(loop.iter) == base:
            yield Proposal(f"`{key}` is the item itself, not its index.", source.replace(node, key))
        elif isinstance(node.slice, ast.Constant) and (number := str(node.slice.value)).isdecimal():
            reason = f"The index is a number: `{number}` without quotation marks."
            yield Proposal(reason, source.replace(node.slice, str(int(number))), kind="converts")
        elif isinstance(node.slice, ast.Constant):
            yield Proposal(
                "A list has no keys; use its first item.", source.replace(node.value, f"{base}[0]"), 0.2
            )
        else:
            edits = source.wrap(node.slice, "int(", ")")  # which fails for a text that holds anything else
            yield Proposal("The index must be a number.", edits, kind="converts")


def rows(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Loop over a dict's values, or read the JSON, where text is indexed by a key."""
    source = site.source
    for node in site.nodes(ast.Subscript)[:2]:
        if not isinstance(node.value, ast.Name):
            continue
        name = node.value.id
        for target, iterated in site.loops():
            if (
                isinstance(target, ast.Name)
                and target.id == name
                and type_of(iterated, site.values) in {"", "dict"}
            ):
                yield Proposal("Iterating over a dict yields its keys; use `.values()` for the values.",
                          source.wrap(iterated, "", ".values()"))  # fmt: skip
        if isinstance(site.values.get(name), str):
            edits = source.replace(node.value, f"json.loads({name})")
            edits += [] if "import json" in source.text else site.add_import("import json")
            yield Proposal("The string is JSON and must be parsed first.", edits, less=0.1)


def pair_index(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for node in site.nodes(ast.Subscript):
        if isinstance(node.slice, ast.Tuple):
            places = "".join(f"[{site.source.segment(item)}]" for item in node.slice.elts)
            text = f"{site.source.segment(node.value)}{places}"
            yield Proposal("Index a list of lists one level at a time.", site.source.replace(node, text))


def deque_slice(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Slice a list of a deque's items, because a deque itself has no slices."""
    for node in site.nodes(ast.Subscript):
        is_read = isinstance(node.ctx, ast.Load)  # what is written into a copy would be lost
        if is_read and isinstance(node.slice, ast.Slice):
            edits = site.source.wrap(node.value, "list(", ")")
            yield Proposal("This sequence takes no slices; a list of its items does.", edits)


# Indexes that a list does not have


def _loop_of(site: Site, name: str) -> list[tuple[ast.expr, ast.Call]]:
    """Return the loops over a `range` that assign that name."""
    return [
        (target, call)
        for target, call in site.loops()
        if isinstance(target, ast.Name)
        and target.id == name
        and isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "range"
        and call.args
    ]


def _shift(index: ast.expr) -> tuple[str, int] | None:
    """Return `i + 2` as `("i", 2)`; None for anything but a name with or without a number added."""
    match index:
        case ast.Name(id=name):
            return name, 0
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=ast.Constant(value=int(step))):
            return name, step
        case ast.BinOp(left=ast.Name(id=name), op=ast.Sub(), right=ast.Constant(value=int(step))):
            return name, -step
    return None


def ends_early(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """End the loop earlier: `for i in range(len(x))` with `x[i + 1]`."""
    source = site.source
    shifts = [shift for node in site.nodes(ast.Subscript) if (shift := _shift(node.slice)) is not None]
    for name, step in sorted(set(shifts), key=lambda shift: -shift[1])[:2]:
        for _, call in _loop_of(site, name):
            stop = call.args[1] if len(call.args) > 1 else call.args[0]
            for text in _shorter(source.segment(stop), step):
                yield Proposal(f"Stop the loop at `{text}`, where the list ends.", source.replace(stop, text))
            if len(call.args) > 1 and step == 0 and re.fullmatch(r"1", source.segment(call.args[0])):
                start, end = source.span(call.args[0])[0], source.span(call.args[-1])[1]
                text = re.sub(r"\s*\+\s*1$", "", source.segment(stop))
                yield Proposal("The first index of a list is 0.", [Edit(start, end, text)], less=0.05)
        yield from _while_loops(site, name)


def comes_round(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Continue with the first item after the last: `for i in range(len(x))` with `x[i + 1]`."""
    for node in site.nodes(ast.Subscript):
        shift, owner = _shift(node.slice), site.source.segment(node.value)
        if shift is None or shift[1] < 1:
            continue
        for _, call in _loop_of(site, shift[0]):
            stop = site.source.segment(call.args[1] if len(call.args) > 1 else call.args[0])
            if stop == f"len({owner})":
                text = f"({site.source.segment(node.slice)}) % len({owner})"
                yield Proposal(
                    "After the last item, start again at the first.", site.source.replace(node.slice, text)
                )


def _shorter(stop: str, step: int) -> Iterator[str]:
    if step >= 0 and stop.isdecimal():
        yield str(int(stop) - max(step, 1))
    elif step > 0:
        yield f"{stop} - {step}"
    elif match := re.fullmatch(r"(.+?)\s*\+\s*1", stop):
        yield match[1]
    elif step == 0 and re.fullmatch(r"len\(.+\)", stop):
        return
    elif step == 0:
        yield f"{stop} - 1"


def _while_loops(site: Site, name: str) -> Iterator[Proposal]:
    for loop in site.body_nodes(ast.While):
        for compare in ast.walk(loop.test):
            match compare:
                case ast.Compare(left=ast.Name(id=found), ops=[ast.LtE()], comparators=[stop]) if (
                    found == name
                ):
                    start, end = site.source.span(compare.left)[1], site.source.span(stop)[0]
                    at = site.source.text.index("<=", start, end)
                    yield Proposal("The last index is the length minus 1.", [Edit(at, at + 2, "<")])


def length_as_place(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Subtract 1 from an index that is the length, or that counts from 1."""
    for node in site.nodes(ast.Subscript):
        text = site.source.segment(node.slice)
        if isinstance(node.slice, ast.Call) and text.startswith("len("):
            yield Proposal("The last index is the length minus 1.", site.source.wrap(node.slice, "", " - 1"))
        elif isinstance(node.slice, ast.Name) and not _loop_of(site, node.slice.id):
            assignments = site.assignments(node.slice.id)
            if assignments and site.source.segment(assignments[0].value).startswith("len("):
                yield Proposal(
                    "The last index is the length minus 1.", site.source.wrap(node.slice, "", " - 1")
                )
            elif node.slice.id in site.values and site.values[node.slice.id] != 0:
                yield Proposal("Indexes start at 0.", site.source.wrap(node.slice, "", " - 1"), less=0.2)


# Lists, dicts and text used as another kind of value


def no_length(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    if match["kind"] not in {"int", "float"}:
        return
    for call in site.nodes(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == "len" and len(call.args) == 1:
            argument = site.source.segment(call.args[0])
            edits = site.source.replace(call.args[0], f"str({argument})")
            yield Proposal("A number has no length; count its digits instead.", edits)
            yield Proposal(
                "A number has no length; use the number itself.", site.source.replace(call, argument), 0.1
            )


def hashed(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Freeze a list or a set that is a key or an item of a set."""
    kind = match["kind"] or match["other"]
    frozen = {"list": "tuple", "set": "frozenset"}.get(kind)
    if frozen is None:
        return
    for node in site.nodes(ast.Subscript):
        yield Proposal(
            f"A {kind} cannot be a key; a {frozen} can.", site.source.wrap(node.slice, f"{frozen}(", ")")
        )
    for call in site.nodes(ast.Call):
        name = called_name(call)
        if len(call.args) >= 1 and name in {"add", "get", "setdefault"}:
            yield Proposal(f"A {kind} cannot be an item here; a {frozen} can.",
                      site.source.wrap(call.args[0], f"{frozen}(", ")"))  # fmt: skip
        elif len(call.args) == 1 and name in {"set", "Counter", "frozenset", "fromkeys"}:
            yield Proposal(f"A {kind} cannot be an item here; a {frozen} can.",
                      site.source.wrap(call.args[0], f"map({frozen}, ", ")"))  # fmt: skip
    for compare in site.nodes(ast.Compare):
        if isinstance(compare.ops[0], ast.In | ast.NotIn):
            yield Proposal(f"A {kind} cannot be an item here; a {frozen} can.",
                      site.source.wrap(compare.left, f"{frozen}(", ")"))  # fmt: skip


def assigned_into(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Convert the tuple to a list, or build the text again, if one of its items is assigned."""
    source, statement = site.source, site.statement
    if not isinstance(statement, ast.Assign | ast.AugAssign):
        return
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return
    name = target.value.id
    if (
        match["kind"] == "str"
        and isinstance(statement, ast.Assign)
        and not isinstance(target.slice, ast.Slice)
    ):
        place, new = source.segment(target.slice), source.segment(statement.value)
        after = f"{place} + 1" if not place.isdigit() else str(int(place) + 1)
        text = f"{name} = {name}[:{place}] + {new} + {name}[{after}:]"
        yield Proposal("Strings are immutable; build a new one.", source.replace(statement, text))
    elif match["kind"] == "tuple":
        for assignment in site.assignments(name)[:1]:
            yield Proposal("Tuples are immutable; use a list.", source.wrap(assignment.value, "list(", ")"))
        if not site.assignments(name) and site.function is not None:
            body = site.function.body
            yield Proposal(
                "Tuples are immutable; use a list.", source.insert_before(body[0], f"{name} = list({name})")
            )


_LAZY = {"map", "filter", "zip", "generator", "dict_keys", "dict_values", "dict_items", "set", "reversed", "enumerate",
         "range_iterator", "list_reverseiterator", "frozenset", "dict_keyiterator"}  # fmt: skip


def listed(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Convert values to a list that can be iterated over only once, or that have no order."""
    kind = match["kind"]
    if kind not in _LAZY and not kind.endswith("iterator"):
        return
    used: list[ast.expr] = [node.value for node in site.nodes(ast.Subscript)]
    used += [
        c.args[0]
        for c in site.nodes(ast.Call)
        if isinstance(c.func, ast.Name) and c.func.id == "len" and c.args
    ]
    for node in used:
        for origin in site.made(node):
            function = "sorted" if kind in {"set", "frozenset"} else "list"
            opening = "[" if isinstance(origin, ast.GeneratorExp) and kind == "generator" else f"{function}("
            edits = site.source.wrap(origin, opening, ")")
            if opening == "[":
                edits = site.source.replace(origin, f"[{site.source.segment(origin)[1:-1]}]")
            yield Proposal(f"A {kind} does not support indexing; a list does.", edits)
            if function == "sorted":
                yield Proposal(
                    f"A {kind} does not support indexing; a list does.",
                    site.source.wrap(origin, "list(", ")"),
                    0.1,
                )


# Loops and unpacking


def counted_to(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use `range`, a list of one or the digits: `for i in 10`, `for i in len(x)`, `for digit in number`."""
    targets: list[tuple[ast.expr, bool]] = []
    if isinstance(site.statement, ast.For):
        targets.append((site.statement.iter, True))
    targets += [(node.iter, True) for node in site.nodes(ast.comprehension)]
    targets += [
        (call.args[0], False)
        for call in site.nodes(ast.Call)
        if isinstance(call.func, ast.Name)
        and call.func.id in {"list", "sum", "sorted", "set", "max", "min", "enumerate", "tuple", "map"}
        and len(call.args) == 1
    ]
    for node, loops in targets:
        if type_of(node, site.values) not in {"", "int"}:
            continue
        if loops or isinstance(node, ast.Call):
            yield Proposal("Use `range` to count up to a number.", site.source.wrap(node, "range(", ")"))
        if not loops:
            yield Proposal("Put the single number into a list.", site.source.wrap(node, "[", "]"), less=0.05)
        if not isinstance(node, ast.Call):
            yield Proposal(
                "Convert the number to a string to get its digits.",
                site.source.wrap(node, "str(", ")"),
                less=0.1,
            )


def pairs(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use `items()` or `enumerate`: `for k, v in d` gets the keys only."""
    loops: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(site.statement, ast.For):
        loops.append((site.statement.target, site.statement.iter))
    loops += [(node.target, node.iter) for node in site.nodes(ast.comprehension, near=False)]
    for target, source in loops:
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            continue
        if isinstance(source, ast.Call) and getattr(source.func, "attr", "") in {"items", "most_common"}:
            continue
        kind = type_of(source, site.values)
        if kind in {"", "dict"}:
            yield Proposal("Use `.items()` for the keys and values of a dict.", site.source.wrap(source, "", ".items()"),
                      less=0.0 if kind else 0.05)  # fmt: skip
        if kind != "dict":
            # A list of texts has no pairs; one of lists may lack an item in one of them.
            items = value_of(source, site.values)
            texts = kind == "str" or (
                type(items) in (list, tuple) and all(type(value) is str for value in items)
            )
            unsure = "unpack (expected" in match.string and not texts
            edits = site.source.wrap(source, "enumerate(", ")")
            reason = "Use `enumerate` for the index and the item."
            yield Proposal(reason, edits, kind="assumes" if unsure else "")


def unread_name(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Remove the last names on the left if there are too many and they are never read."""
    count, source = int(match["got"]), site.source
    for target in site.nodes(ast.Tuple, near=False):
        names = [element.id for element in target.elts[count:] if isinstance(element, ast.Name)]
        unread = len(names) == len(target.elts) - count and all(len(site.uses(name)) == 1 for name in names)
        if isinstance(target.ctx, ast.Store) and unread and names and count > 1:
            edits = [Edit(source.span(target.elts[count - 1])[1], source.span(target.elts[-1])[1], "")]
            reason = f"There are {count} values, and the code never reads `{'`, `'.join(names)}`."
            yield Proposal(reason, edits, kind="assumes")  # a value may be missing instead


def changed_while_read(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Loop over a copy of what the loop changes."""
    loops = [node for node in site.body_nodes(ast.For) if node is site.statement] or list(
        site.body_nodes(ast.For)
    )
    for loop in loops:
        yield Proposal(
            "The loop changes what it iterates over, so it iterates over a copy.",
            site.source.wrap(loop.iter, "list(", ")"),
        )


def pieces(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Split only once, at the first or the last separator, or collect the rest."""
    statement, source = site.statement, site.source
    targets = (
        statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    )
    count = len(targets.elts) if isinstance(targets, ast.Tuple | ast.List) else int(match["count"])
    for call in site.nodes(ast.Call, near=False):
        if (
            not isinstance(call.func, ast.Attribute)
            or call.func.attr not in {"split", "rsplit"}
            or len(call.args) > 1
        ):
            continue
        end = source.span(call)[1] - 1
        text = f", {count - 1}" if call.args else f"None, {count - 1}"
        edits = [Edit(end, end, text)]
        yield Proposal(f"Split the string into at most {count} parts.", edits)
        at = source.span(call.func)[1]
        if call.func.attr == "split" and call.args:
            yield Proposal("Split the string from the right.", [Edit(at - 5, at, "rsplit"), *edits], less=0.1)
    if isinstance(targets, ast.Tuple) and targets.elts and isinstance(targets.elts[-1], ast.Name):
        last = targets.elts[-1]
        yield Proposal(
            "Collect the remaining values in the last name.", source.replace(last, f"*{last.id}"), less=0.2
        )
