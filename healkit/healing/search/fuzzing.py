"""Inputs near those of the checks, to compare patches on.

Nobody knows what is right there; what counts is on how many of them a patch does as the code did, and which patches
agree with each other. The inputs depend on the checks alone, not on chance.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from healkit.contracts.healing import Check

_MOST = 14


def nearby(checks: Sequence[Check], most: int = _MOST) -> list[Check]:
    """Checks without an expected value, each near one of the given, in turn; no two alike, none of the given."""
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


def _key(check: Check) -> str:
    return json.dumps([check.arguments, check.call], sort_keys=True, default=str)


def _variants(check: Check, chance: random.Random) -> Iterator[Check]:
    for _ in range(24):
        if check.call:
            call = _other_call(check.call, chance)
            if call is not None:
                yield Check(origin="passing", call=call)
        elif check.arguments:
            name = chance.choice(sorted(check.arguments))
            yield Check(
                origin="passing", arguments={**check.arguments, name: other(check.arguments[name], chance)}
            )


def other(value: Any, chance: random.Random) -> Any:
    """A value of the same kind and about the same size."""
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
    """The call with one of its literals changed."""
    try:
        tree = ast.parse(call)
    except (SyntaxError, ValueError):
        return None
    places = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, str)
    ]
    places = [node for node in places if not (isinstance(node.value, str) and node.value == "")]
    if not places:
        return None
    node = chance.choice(places)
    node.value = other(node.value, chance)
    return ast.unparse(tree)
