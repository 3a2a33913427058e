"""Further inputs for a tool, made from its known inputs.

Each is one small change to one value of a known input, smaller changes first. If two patches differ on an input, a
person should be able to work it out by hand. A value keeps its type: an input that a tool was never meant for says
nothing about what is right. (The idea is property-based testing's shrinking, in reverse: start small and grow. MacIver
and Donaldson, "Test-Case Reduction via Test-Case Generation", ECOOP 2020.)
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from healkit.core.contracts.patches import Check
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.pysource.nodes import stored_names
from healkit.core.store.arguments import validate_arguments
from healkit.core.wire.encoding import is_plain
from healkit.errors import ArgumentsInvalid, SchemaInvalid

#: Files that stand for a known one, and files that are looked at.
_FILES_MAX, _FILES_LOOKED_AT = 4, 200
Accepts = Callable[[dict[str, Any]], bool]
#: A frame, a series or an array; pandas and numpy are loaded only where a tool has one.
Table = Any
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
    """Return the arguments of the checks; for a check with Python source, those of its call of the tool, if plain."""
    inputs = (_called_with(entry, check.told) if check.call else check.arguments for check in checks)
    return [arguments for arguments in inputs if arguments is not None]


def _called_with(entry: VaultEntry, call: str) -> dict[str, Any] | None:
    """Return the arguments of the one call of the tool in that source; None if they are not literals."""
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
        arguments = dict(zip(parameters, map(ast.literal_eval, calls[0].args), strict=False))
        arguments |= {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in calls[0].keywords}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None  # a name, a starred argument, a calculation
    return arguments if is_plain(arguments) and accepted(entry, arguments) else None


def variants(
    known: Iterable[dict[str, Any]], accepts: Accepts, limit: int, numbers: tuple[float, ...] = ()
) -> list[dict[str, Any]]:
    """Return up to `limit` unknown inputs that `accepts` allows, the smallest first.

    numbers: Numbers to try in a cell of a frame.
    """
    known = list(known)
    keys = {_key(arguments) for arguments in known}
    inputs: list[dict[str, Any]] = []
    # Two rounds: inputs one change away, then two, as long as there is room.
    sources = known
    for away in range(2):
        fresh: list[dict[str, Any]] = []
        for arguments in sources:
            for variant in _changed(arguments, numbers, fills=not away):
                key = _key(variant)
                if key not in keys:
                    keys.add(key)
                    fresh.append(variant)
            if len(inputs) + len(fresh) >= 8 * limit:
                break
        inputs += fresh
        sources = fresh
    # Last, and only as often as needed: validating an input takes longer than making one.
    return list(itertools.islice(filter(accepts, sorted(inputs, key=size)), limit))


def neighbour_files(entry: VaultEntry, known: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return inputs with another file of the same folder in place of one that the tool may read."""
    places = [Path(path) for path in (*entry.grants.read, *entry.grants.write)]
    by_key: dict[str, dict[str, Any]] = {}
    for arguments in known:
        for name, value in arguments.items():
            path = Path(value) if isinstance(value, str) and "/" in value else None
            if path is None or not any(path == place or place in path.parents for place in places):
                continue
            with contextlib.suppress(OSError, ValueError):
                siblings = itertools.islice(path.parent.iterdir(), _FILES_LOOKED_AT)
                files = sorted(sibling for sibling in siblings if sibling != path and sibling.is_file())
                files.sort(key=lambda one: one.suffix != path.suffix)
                for file in files[:_FILES_MAX]:
                    by_key.setdefault(_key(variant := {**arguments, name: str(file)}), variant)
    return list(by_key.values())[: 2 * _FILES_MAX]


def one_change_away(known: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield inputs that differ from a known one in one small change, from each in turn; no duplicates."""
    keys = {_key(arguments) for arguments in known}
    for row in itertools.zip_longest(*map(_changed, known)):
        for variant in row:
            if variant is not None and (key := _key(variant)) not in keys:
                keys.add(key)
                yield variant


def size(arguments: object) -> tuple[int, str]:
    """Return a sort key by how much there is to read in an input; equal inputs have equal keys."""
    text = json.dumps(arguments, sort_keys=True, default=str)
    return len(text), text


def _key(arguments: object) -> str:
    return json.dumps(arguments, sort_keys=True, default=str)


def _changed(value: object, numbers: tuple[float, ...] = (), *, fills: bool = True) -> Iterator[Any]:
    """Yield values of the same type, each a small change away.

    fills: Also put items of any type into empty values. A value that was emptied before had items of its own kind.
    """
    if isinstance(value, dict) and values.TAG in value:
        yield from frame_variants(value, numbers)
        return
    if value in ([], "", {}):
        yield from FILLED[type(value)] if fills or value == "" else ()
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
            for variant in _changed(item, numbers, fills=fills):
                yield {**value, name: variant}


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
        for variant in _changed(item, fills=False):
            yield [*items[:at], variant, *items[at + 1 :]]


# Frames and arrays: the known one with fewer rows, in another order, or with one changed cell. It is small enough to be
# shown as a table, with the same columns and dtypes, so that the tool still takes it.

#: Rows and columns that are looked at one by one, and the longest frame that is varied whole.
_ROWS_MAX, _COLUMNS_MAX = 5, 8
_HEAD_ROWS = 30
#: Number of rows of a sample.
_SAMPLE_ROWS = 1000


def frame_variants(kept: dict[str, Any], numbers: tuple[float, ...] = ()) -> list[Any]:
    """Return variants of a kept frame, series or array; none for another value.

    numbers: Numbers to try in a cell, such as the limits that the code compares with.
    """
    return list(_frame_variants(json.dumps(kept), numbers))


def sample(value: Table, items_max: int) -> Table:
    """Return a long frame, series or array with rows at even distances, including the first and the last.

    items_max: How many items it may have. Any other value is returned unchanged.
    """
    if not _is_known(value) or value.size <= items_max:
        return value
    count = max(1, min(_SAMPLE_ROWS, items_max * len(value) // value.size))
    places = sorted({round(at * (len(value) - 1) / max(1, count - 1)) for at in range(count)})
    return _rows_at(value, places)


def without_columns(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield kept arguments with one column of a frame left out."""
    for name, value in arguments.items():
        frame: Table = values.remade(value) if values.has_tags(value) else None
        if type(frame).__name__ == "DataFrame" and frame.shape[1] > 1:
            for place in range(min(frame.shape[1], _COLUMNS_MAX)):
                fewer = frame.drop(columns=frame.columns[place])
                yield {**arguments, name: values.kept(fewer)}


def frame_edges(kept: dict[str, Any]) -> list[Any]:
    """Return it with only its first row.

    Without rows it would say little: dtypes of empty results often differ without a meaning.
    """
    table = values.remade(kept)
    return [values.kept(_rows_at(table, range(1)))] if _is_known(table) and len(table) > 1 else []


@functools.lru_cache(maxsize=64)
def _frame_variants(text: str, numbers: tuple[float, ...]) -> tuple[Any, ...]:
    table = values.remade(json.loads(text))
    if not _is_known(table):
        return ()
    by_text = {json.dumps(variant): variant for variant in map(values.kept, _changed_tables(table, numbers))}
    by_text.pop(text, None)
    return tuple(by_text.values())


def _is_known(value: Table) -> bool:
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    if package == "pandas":
        return name in {"DataFrame", "Series"}
    return package == "numpy" and name == "ndarray" and value.ndim > 0


def _rows_at(known: Table, places: Iterable[int]) -> Table:
    """Return these rows of it; an index that only counts them starts again at 0."""
    chosen = list(places)
    if not hasattr(known, "iloc"):
        return known[chosen]
    rows = known.iloc[chosen]
    return rows.reset_index(drop=True) if type(known.index).__name__ == "RangeIndex" else rows


def _changed_tables(known: Table, numbers: tuple[float, ...]) -> Iterator[Table]:
    known = _rows_at(known, range(min(len(known), _HEAD_ROWS)))
    count = len(known)
    places = range(count)
    for size in (1, 2, 3):
        if size < count:
            yield _rows_at(known, places[:size])
            yield _rows_at(known, places[-size:])
    for place in places[:_ROWS_MAX] if count > 1 else ():
        yield _rows_at(known, [row for row in places if row != place])
    if count:
        yield _rows_at(known, reversed(places))
        yield _rows_at(known, [*places, 0])
        yield _rows_at(known, [*places[1:], 0])
    if getattr(known, "columns", None) is not None:
        yield from _with_other_cells(known, numbers)
    else:
        for cell in _other_cells(known, numbers):
            yield from _with_cell(known, None, *cell)


def _with_other_cells(frame: Table, numbers: tuple[float, ...]) -> Iterator[Table]:
    small = _rows_at(frame, range(min(len(frame), 3)))
    for source in (small, frame) if len(small) < len(frame) else (frame,):
        for place in range(min(source.shape[1], _COLUMNS_MAX)):
            for cell in _other_cells(source.iloc[:, place], numbers):
                yield from _with_cell(source, place, *cell)


def _other_cells(column: Table, numbers: tuple[float, ...]) -> Iterator[tuple[int, Any]]:
    """Yield rows and other values for them: another row's, a number nearby, a missing one if some are."""
    items = column[:3].tolist() if column.ndim == 1 else list(column[:3])
    kind = getattr(column.dtype, "kind", "O")
    has_missing = hasattr(column, "isna") and bool(column.isna().any())
    for row, item in enumerate(items):
        for replacement in (*items[:row], *items[row + 1 :]):
            yield row, replacement
        if kind in "if":
            yield from ((row, item + 1), (row, -item), (row, item * 0))
            if row == 0:
                yield from ((row, number) for number in numbers if kind == "f" or number == int(number))
        if has_missing:  # a tool that never meets a missing value says nothing by what it does with one
            yield row, float("nan") if kind == "f" else None


def _with_cell(known: Table, column: int | None, row: int, value: object) -> Iterator[Table]:
    """Yield a copy with that cell changed; nothing if the dtype cannot store the value."""
    changed_table = known.copy()
    with contextlib.suppress(Exception):  # pandas raises errors of many kinds, some of its own
        if hasattr(changed_table, "iloc"):
            changed_table.iloc[row if column is None else (row, column)] = value
        else:
            changed_table[row] = value
        yield changed_table


# Inputs near those of the checks, on which patches are compared. What is right there is not known; it counts on how
# many of them a patch does what the code did, and which patches agree. They depend on the checks alone, not on chance.

_NEARBY_MAX = 14


def nearby(checks: Sequence[Check], most: int = _NEARBY_MAX) -> list[Check]:
    """Return checks without an expected value, each near one of the given ones in turn; all different and new."""
    keys = {_check_key(check) for check in checks}
    sources = [_near_one(check, random.Random(position)) for position, check in enumerate(checks)]  # noqa: S311 - no secret
    probes: list[Check] = []
    for _ in range(6):
        for source in sources:
            for check in source:
                if (key := _check_key(check)) not in keys:
                    keys.add(key)
                    probes.append(check)
                    break
            if len(probes) >= most:
                return probes
    return probes


def edges(checks: Sequence[Check], most: int) -> list[Check]:
    """Return checks without an expected value at edges of the given arguments: empty, one element, zero."""
    keys = {_check_key(check) for check in checks}
    probes: list[Check] = []
    for check in checks:
        for name, value in check.arguments.items():
            for edge in _edges_of(value):
                probe = Check(origin="passing", arguments={**check.arguments, name: edge})
                if (key := _check_key(probe)) not in keys:
                    keys.add(key)
                    probes.append(probe)
        if check.call and not check.shown:
            for probe in _edge_calls(check.call):
                if (key := _check_key(probe)) not in keys:
                    keys.add(key)
                    probes.append(probe)
        if len(probes) >= most:
            break
    return probes[:most]


def _edges_of(value: object) -> list[object]:
    if values.has_tags(value):
        return frame_edges(value) if isinstance(value, dict) and values.TAG in value else []
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
            elements, node.elts = node.elts, []
            yield Check(origin="passing", call=ast.unparse(tree))
            node.elts = elements[:1]
            yield Check(origin="passing", call=ast.unparse(tree))
            node.elts = elements
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            text, node.value = node.value, ""
            yield Check(origin="passing", call=ast.unparse(tree))
            node.value = text


def _check_key(check: Check) -> str:
    return json.dumps([check.arguments, check.call], sort_keys=True, default=str)


def _near_one(check: Check, chance: random.Random) -> Iterator[Check]:
    for _ in range(24):
        if check.shown:
            return
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
    of_its_type = [scalar for scalar in scalars(arguments) if type(scalar) is type(value) and scalar != value]
    if of_its_type and chance.random() < 0.5:
        return {**arguments, name: chance.choice(of_its_type)}
    if value in ([], "", {}):
        return {**arguments, name: chance.choice(FILLED[type(value)])}
    return {**arguments, name: _other_value(value, chance)}


def scalars(value: object) -> Iterator[object]:
    """Yield the parts of a kept value that are neither a list nor a dict; nothing of a frame."""
    if isinstance(value, dict) and values.TAG in value:
        return
    if isinstance(value, dict | list):
        for inside in value.values() if isinstance(value, dict) else value:
            yield from scalars(inside)
    else:
        yield value


def _other_value(value: object, chance: random.Random) -> Any:
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
            return {name: inside for name, inside in value.items() if name != key}
        return {**value, key: _other_value(value[key], chance)}
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
    return [*value[:place], _other_value(value[place], chance), *value[place + 1 :]]


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
        of_its_type = [
            constant.value
            for constant in _places(tree, [])
            if isinstance(constant, ast.Constant) and type(constant.value) is type(node.value)
        ]
        # A value that is searched for is often an element of the collection.
        node.value = (
            chance.choice(of_its_type)
            if node in arguments and chance.random() < 0.5
            else _other_value(node.value, chance)
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
