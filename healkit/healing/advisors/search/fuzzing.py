"""Inputs near those of the checks, to compare patches on.

It is not known what is right there. What counts is on how many of them a patch does what the code did, and which
patches agree with each other. The inputs depend on the checks alone, not on chance.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from healkit import values
from healkit.contracts.healing import Check
from healkit.healing.frame_inputs import frame_edges, frame_variants
from healkit.healing.inputs import FILLED
from healkit.pysource.scope import stored_names

_MOST = 14


def nearby(checks: Sequence[Check], most: int = _MOST) -> list[Check]:
    """Return checks without an expected value, each near one of the given in turn; all different and new."""
    given = {_key(check) for check in checks}
    sources = [_variants(check, random.Random(position)) for position, check in enumerate(checks)]  # noqa: S311 - no secret
    found: list[Check] = []
    for _ in range(6):
        for source in sources:
            for check in source:
                if (key := _key(check)) not in given:
                    given.add(key)
                    found.append(check)
                    break
            if len(found) >= most:
                return found
    return found


def edges(checks: Sequence[Check], most: int) -> list[Check]:
    """Return checks without an expected value at edges of the given arguments: empty, one element, zero."""
    given = {_key(check) for check in checks}
    found: list[Check] = []
    for check in checks:
        for name, value in check.arguments.items():
            for edge in _edges_of(value):
                made = Check(origin="passing", arguments={**check.arguments, name: edge})
                if (key := _key(made)) not in given:
                    given.add(key)
                    found.append(made)
        if check.call:
            for made in _edge_calls(check.call):
                if (key := _key(made)) not in given:
                    given.add(key)
                    found.append(made)
        if len(found) >= most:
            break
    return found[:most]


def _edges_of(value: Any) -> list[Any]:
    if values.has_tags(value):
        return frame_edges(value) if values.TAG in value else []
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, list | str):
        return [value[:0], value[:1]] if len(value) > 1 else [value[:0]]
    if isinstance(value, int):
        return [0, 1]
    return [{}] if isinstance(value, dict) else []


def _edge_calls(call: str) -> Iterator[Check]:
    """Yield the source with one literal list or text of its last expression emptied."""
    try:
        tree = ast.parse(call)
    except (SyntaxError, ValueError):
        return
    last = tree.body[-1] if tree.body else None
    for node in ast.walk(last) if last is not None else ():
        if isinstance(node, ast.List) and node.elts:
            kept, node.elts = node.elts, []
            yield Check(origin="passing", call=ast.unparse(tree))
            node.elts = kept[:1]
            yield Check(origin="passing", call=ast.unparse(tree))
            node.elts = kept
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            text, node.value = node.value, ""
            yield Check(origin="passing", call=ast.unparse(tree))
            node.value = text


def _key(check: Check) -> str:
    return json.dumps([check.arguments, check.call], sort_keys=True, default=str)


def _variants(check: Check, chance: random.Random) -> Iterator[Check]:
    for _ in range(24):
        if check.call:
            call = _other_call(check.call, chance)
            if call is not None:
                yield Check(origin="passing", call=call)
        elif check.arguments:
            yield Check(origin="passing", arguments=_other_arguments(check.arguments, chance))


def _other_arguments(arguments: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return the arguments with one of them changed; a scalar often to one found in the others."""
    name = chance.choice(sorted(arguments))
    value = arguments[name]
    alike = [one for one in _scalars(arguments) if type(one) is type(value) and one != value]
    if alike and chance.random() < 0.5:
        return {**arguments, name: chance.choice(alike)}
    if value in ([], "", {}):
        return {**arguments, name: chance.choice(FILLED[type(value)])}
    return {**arguments, name: other(value, chance)}


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and values.TAG in value:
        return
    if isinstance(value, dict | list):
        for inside in value.values() if isinstance(value, dict) else value:
            yield from _scalars(inside)
    else:
        yield value


def other(value: Any, chance: random.Random) -> Any:
    """Return another value of the same kind and about the same size."""
    if isinstance(value, dict) and values.TAG in value:
        return chance.choice(frame_variants(value) or [value])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chance.choice((-2, -1, 1, 1, 2, 3))
    if isinstance(value, float):
        return round(value + chance.choice((-1.0, -0.5, 0.5, 1.0, 2.25)), 6)
    if isinstance(value, str):
        return _other_text(value, chance)
    if isinstance(value, list):
        return _other_list(value, chance)
    if isinstance(value, dict) and value:
        key = chance.choice(sorted(value, key=str))
        if chance.random() < 0.25:
            return {one: inside for one, inside in value.items() if one != key}
        return {**value, key: other(value[key], chance)}
    return value


def _other_text(value: str, chance: random.Random) -> str:
    if not value:
        return "ab"
    place = chance.randrange(len(value))
    kind = chance.randrange(5)
    if kind == 0:
        return value[:place] + value[place + 1 :]
    if kind == 1:
        return value[:place] + value[place] + value[place:]
    if kind == 2:
        return value[::-1]
    if kind == 3:
        with_other = chance.choice(value)
        return value[:place] + with_other + value[place + 1 :]
    return value + value[: place + 1]


def _other_list(value: list[Any], chance: random.Random) -> list[Any]:
    if not value:
        return value
    place = chance.randrange(len(value))
    kind = chance.randrange(6)
    if kind == 0:
        return value[:place] + value[place + 1 :]
    if kind == 1:
        return [*value[:place], value[place], *value[place:]]
    if kind == 2:
        return value[::-1]
    if kind == 3:
        moved = list(value)
        chance.shuffle(moved)
        return moved
    return [*value[:place], other(value[place], chance), *value[place + 1 :]]


def _other_call(call: str, chance: random.Random) -> str | None:
    """Return the source with one literal or name changed, or one element of a list removed."""
    try:
        tree = ast.parse(call)
    except (SyntaxError, ValueError):
        return None
    bound = sorted(set(stored_names(tree)))
    arguments = [arg for node in ast.walk(tree) if isinstance(node, ast.Call) for arg in node.args]
    part = chance.choice([tree, *arguments])
    places = _places(part, bound) or _places(tree, bound)
    if not places:
        return None
    kind = chance.choice(sorted({type(node).__name__ for node in places}))
    node = chance.choice([node for node in places if type(node).__name__ == kind])
    if isinstance(node, ast.Constant):
        alike = [
            one.value
            for one in _places(tree, [])
            if isinstance(one, ast.Constant) and type(one.value) is type(node.value)
        ]
        # A value that is searched for is often an element of the collection.
        node.value = (
            chance.choice(alike) if node in arguments and chance.random() < 0.5 else other(node.value, chance)
        )
    elif isinstance(node, ast.Name):
        node.id = chance.choice(bound)
    elif isinstance(node, ast.List):
        del node.elts[chance.randrange(len(node.elts))]
    return ast.unparse(tree)


def _places(part: ast.AST, bound: Sequence[str]) -> list[ast.AST]:
    called = {id(node.func) for node in ast.walk(part) if isinstance(node, ast.Call)}
    return [node for node in ast.walk(part) if _is_place(node, bound) and id(node) not in called]


def _is_place(node: ast.AST, bound: Sequence[str]) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float) or (isinstance(node.value, str) and node.value != "")
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Load) and node.id in bound and len(bound) > 1
    return isinstance(node, ast.List) and bool(node.elts)
