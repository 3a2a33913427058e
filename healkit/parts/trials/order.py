"""Order in which recorded runs are re-run, most telling first.

Each run has features: types, signs and sizes of the parts of its arguments and of its result, and the exception that it
raised. Further features are literals of the code near its arguments: `if points >= 90` is decided by a run with 89, 90
or 91. The next run is the one with the rarest features so far: a feature counts half as much each time it was seen.
This is "additional" coverage (Rothermel et al., "Prioritizing Test Cases For Regression Testing", IEEE TSE 2001) with
features in place of statements, so nothing has to run first. benchmarks/learn/regress.py measures it.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import heapq
import itertools
import json
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from healkit.core.store.models import ExecutionLog

#: Weight of what a run gave, and of being at a literal of the code, where another feature counts 1.
_TELLING = 4.0
#: Factor of a feature's weight for each run before that had it.
_SEEN_AGAIN = 0.5
#: Items of a list or a dict, and characters of a text, that are looked at.
_ITEMS_MAX, _CHARS_MAX = 100, 1000
_DEPTH_MAX = 5
_LITERAL_CHARS = 30

Feature = tuple[Hashable, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded run, with the facts that decide its place in the order.

    arguments: JSON, as in the log.
    outcome: The result as JSON text, or the name of the exception.
    """

    arguments: Mapping[str, Any]
    succeeded: bool
    outcome: str


def recorded_of(row: ExecutionLog) -> Recorded:
    """Return a row in the form for ordering; its frames count by their previews."""
    arguments = row.arguments if isinstance(row.arguments, dict) else {}
    succeeded = row.status == "SUCCESS"
    return Recorded(arguments, succeeded, (row.result_summary if succeeded else row.ename) or "")


def order(runs: Sequence[Recorded], *codes: str) -> list[int]:
    """Return the positions of all runs, the most telling ones first.

    If runs tell equally much, the first given one comes first.

    codes: The tool's code, and the code to replace it.
    """
    literals = _literals(codes)
    weights = [dict(_features(run, literals)) for run in runs]
    feature_counts: Counter[Feature] = Counter()

    def gain(at: int) -> float:
        return -sum(
            weight * _SEEN_AGAIN ** feature_counts[feature] for feature, weight in weights[at].items()
        )

    # A gain only becomes smaller, so the best by its latest value is the best where that value is still right.
    waiting = [(gain(at), at) for at in range(len(runs))]
    heapq.heapify(waiting)
    positions = []
    while waiting:
        _, at = heapq.heappop(waiting)
        now = (gain(at), at)
        if waiting and now > waiting[0]:
            heapq.heappush(waiting, now)
            continue
        positions.append(at)
        feature_counts.update(weights[at].keys())
    return positions


def _features(run: Recorded, literals: frozenset[float | str]) -> Iterator[tuple[Feature, float]]:
    for name, value in run.arguments.items():
        yield from ((feature, 1.0) for feature in _shape(value, name))
        yield from ((feature, _TELLING) for feature in _at_literals(value, name, literals))
    yield ("outcome", run.succeeded, run.outcome[:_CHARS_MAX]), _TELLING
    if run.succeeded:
        try:
            value = json.loads(run.outcome)
        except ValueError:  # it was cut, or is not JSON
            return
        yield from ((feature, _TELLING) for feature in _shape(value, "->"))


def _shape(value: object, path: str, depth: int = 0) -> Iterator[Feature]:
    """Yield the features of a value and its parts: types, signs, sizes by powers of two, kinds of characters."""
    yield path, type(value).__name__
    if value is None or isinstance(value, bool):
        yield path, value
    elif isinstance(value, int | float):
        yield path, "sign", (value > 0) - (value < 0)
        yield path, "size", _size(abs(value))
    elif isinstance(value, str):
        yield path, "length", _size(len(value))
        for char in set(value[:_CHARS_MAX]):
            kinds = ((char.isdigit(), "0"), (char.isupper(), "A"), (char.islower(), "a"))
            yield path, "has", next((kind for holds, kind in kinds if holds), char)
    elif isinstance(value, list):
        yield path, "length", _size(len(value))
        texts = [json.dumps(item, sort_keys=True, default=str) for item in value[:_ITEMS_MAX]]
        yield path, "repeats", len(set(texts)) < len(texts)
    elif isinstance(value, dict):
        yield path, "length", _size(len(value))
        yield from ((path, "key", str(name)) for name in itertools.islice(value, _ITEMS_MAX))
    if depth < _DEPTH_MAX:
        for part, where in _parts(value, path):
            yield from _shape(part, where, depth + 1)


def _at_literals(
    value: object, path: str, literals: frozenset[float | str], depth: int = 0
) -> Iterator[Feature]:
    """Yield the literals near a value, its length and its parts: a number within 1, a text that contains it."""
    if isinstance(value, str):
        yield from (
            (path, "text", literal, literal == value)
            for literal in literals
            if isinstance(literal, str) and literal in value
        )
    if isinstance(value, str | list | dict):
        yield from ((path, "length", *near) for near in _near(len(value), literals))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from ((path, "number", *near) for near in _near(value, literals))
    if depth < _DEPTH_MAX:
        for part, where in _parts(value, path):
            yield from _at_literals(part, where, literals, depth + 1)


def _near(number: float, literals: frozenset[float | str]) -> Iterator[tuple[float, float]]:
    return (
        (literal, number - literal)
        for literal in literals
        if not isinstance(literal, str) and abs(number - literal) <= 1
    )


def _parts(value: object, path: str) -> Iterator[tuple[object, str]]:
    if isinstance(value, list):
        yield from ((item, f"{path}[]") for item in value[:_ITEMS_MAX])
    elif isinstance(value, dict):
        yield from ((item, f"{path}.{name}") for name, item in itertools.islice(value.items(), _ITEMS_MAX))


def _size(number: float) -> int:
    return math.frexp(min(number, 1e300))[1]


def _literals(codes: Sequence[str]) -> frozenset[float | str]:
    """Return the numbers and short texts in the codes; none for a code that Python cannot read."""
    literals: set[float | str] = set()
    for code in codes:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            for node in ast.walk(ast.parse(code)):
                match node:
                    case ast.Constant(value=bool()):
                        continue
                    case ast.Constant(value=int() | float() as number) if math.isfinite(number):
                        literals.add(number)
                    case ast.Constant(value=str() as text) if 0 < len(text) < _LITERAL_CHARS:
                        literals.add(text)
    return frozenset(literals)
