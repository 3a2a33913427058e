"""Further inputs for a tool, made from its known inputs.

Each is one small change to one value of a known input, smaller changes first: an input on which two patches differ
should be one that a person can work out by hand. A value keeps its type: an input that a tool was never meant for says
nothing about what is right. (The idea is property-based testing's shrinking, turned around: start small and grow.
MacIver and Donaldson, "Test-Case Reduction via Test-Case Generation", ECOOP 2020.)
"""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from healkit import values
from healkit.contracts.encoding import is_plain
from healkit.contracts.healing import Check
from healkit.contracts.vault import VaultEntry
from healkit.errors import ArgumentsInvalid, SchemaInvalid
from healkit.healing.frame_inputs import frame_variants
from healkit.store.arguments import validate_arguments

Accepts = Callable[[dict[str, Any]], bool]
#: Values for an empty list, text or dict whose items are not described.
FILLED: dict[type, tuple[Any, ...]] = {
    list: ([1], [2, 1, 3], ["b", "a"]),
    str: ("a", "ab cd"),
    dict: ({"a": 1}, {"b": "c"}),
}


def accepted(entry: VaultEntry, arguments: dict[str, Any]) -> bool:
    """Return True if the tool's schema accepts the arguments."""
    if values.has_tags(arguments):
        arguments = values.for_schema(values.remade(arguments))
    try:
        validate_arguments(entry, arguments)
    except (ArgumentsInvalid, SchemaInvalid):
        return False
    return True


def known_inputs(entry: VaultEntry, checks: Iterable[Check]) -> list[dict[str, Any]]:
    """Return the arguments of the checks; of one that is Python source, those of its call of the tool, if plain."""
    found = (_called_with(entry, check.call) if check.call else check.arguments for check in checks)
    return [arguments for arguments in found if arguments is not None]


def _called_with(entry: VaultEntry, call: str) -> dict[str, Any] | None:
    """Return the arguments of the one call of the tool in that source; None where they are not literals."""
    try:
        nodes = ast.walk(ast.parse(call))
    except (SyntaxError, ValueError, RecursionError):
        return None
    calls = [
        node
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("run", entry.tool_name)
    ]
    parameters = list(entry.input_schema.get("properties", {}))
    if len(calls) != 1 or len(calls[0].args) > len(parameters):
        return None
    try:
        given = dict(zip(parameters, map(ast.literal_eval, calls[0].args), strict=False))
        given |= {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in calls[0].keywords}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None  # a name, a starred argument, a calculation
    return given if is_plain(given) and accepted(entry, given) else None


def variants(
    known: Iterable[dict[str, Any]], accepts: Accepts, limit: int, numbers: tuple[float, ...] = ()
) -> list[dict[str, Any]]:
    """Return up to `limit` inputs that `accepts` allows, the smallest first, none of them known.

    numbers: those that a cell of a frame may be at.
    """
    known = list(known)
    seen = {_key(arguments) for arguments in known}
    found: list[dict[str, Any]] = []
    # Two rounds: inputs one change away, then two, as long as there is room.
    sources = known
    for _ in range(2):
        made: list[dict[str, Any]] = []
        for arguments in sources:
            for other in _changed(arguments, numbers):
                key = _key(other)
                if key not in seen:
                    seen.add(key)
                    made.append(other)
            if len(found) + len(made) >= 8 * limit:
                break
        found += made
        sources = made
    # Last, and only as often as needed: validating an input takes longer than making one.
    return list(itertools.islice(filter(accepts, sorted(found, key=size)), limit))


def size(arguments: Any) -> tuple[int, str]:
    """Return a sort key by how much there is to read in an input; equal inputs have equal keys."""
    text = json.dumps(arguments, sort_keys=True, default=str)
    return len(text), text


def _key(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True, default=str)


def _changed(value: Any, numbers: tuple[float, ...] = ()) -> Iterator[Any]:
    """Yield values of the same type, each a small change away."""
    if isinstance(value, dict) and values.TAG in value:
        yield from frame_variants(value, numbers)
        return
    if value in ([], "", {}):
        yield from FILLED[type(value)]
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (0, 1, 2, -1, value + 1, value - 1, value * 2, -value)
    elif isinstance(value, float):
        yield from (0.0, 1.0, 0.5, -1.0, value + 0.5, -value)
    elif isinstance(value, str):
        yield from _texts(value)
    elif isinstance(value, list):
        yield from _lists(value)
    elif isinstance(value, dict):
        for name, item in value.items():
            for other in _changed(item, numbers):
                yield {**value, name: other}


def _texts(text: str) -> Iterator[str]:
    yield ""
    if text:
        yield from (
            text[0],
            text[1:],
            text[:-1],
            text[::-1],
            text.upper(),
            text.lower(),
            text + text[-1],
            f"{text[0]}-{text[-1]}",
            f" {text}",
        )
    if len(words := text.split()) > 1:
        yield from (words[0], " ".join(words[1:]), " ".join(reversed(words)))


def _lists(items: list[Any]) -> Iterator[list[Any]]:
    yield []
    for at in range(min(len(items), 6)):
        yield items[:at] + items[at + 1 :]
    if len(items) > 1:
        yield from (items[:1], items[::-1], [*items[1:], items[0]], [*items, items[0]])
    for at, item in enumerate(items[:4]):
        for other in _changed(item):
            yield [*items[:at], other, *items[at + 1 :]]
