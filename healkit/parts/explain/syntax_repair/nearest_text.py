"""Search for the nearest text that Python can read.

A change adds, removes or replaces a few characters where Python stops. If Python then reads further, another change is
tried there, up to three in all; otherwise the change is dropped. Only the compiler decides what Python can read. The
found texts are ordered by cost and oddity.
"""

from __future__ import annotations

import ast
import heapq
import itertools
import time
from collections.abc import Callable, Container, Iterable, Iterator
from typing import NamedTuple

from healkit.core.contracts.patches import apply_edits
from healkit.core.pysource.nodes import unknown_names
from healkit.parts.explain.catalogue import spared
from healkit.parts.explain.known_names import import_for
from healkit.parts.explain.source import Source
from healkit.parts.explain.syntax_repair import changes, delimiters, readings
from healkit.parts.explain.syntax_repair.draft import (
    CompilerMessage,
    Draft,
    Repair,
    compiler_message,
)
from healkit.parts.explain.syntax_repair.oddities import oddness

CHANGES_MAX = 3
_SECONDS_MAX = 2.0
_TRIALS_MAX = 4000
#: How much more than the cheapest text another may cost and still be tried.
_SLACK = 0.75
#: Messages about tokens that Python reports before any other mistake, wherever they are.
_REPORTED_FIRST = ("unterminated", "was never closed")


class Readable(NamedTuple):
    """A text that compiles, its distance from the draft, and what was done, in order."""

    text: str
    cost: float
    done: tuple[str, ...]


class _Open(NamedTuple):
    cost: float
    number: int
    text: str
    stop: CompilerMessage
    done: tuple[str, ...]
    depth: int


def nearest(code: str, limit: int = 10) -> list[Readable]:
    """Return texts near a draft that compile, likeliest first; empty if none was found in time."""
    judged: list[tuple[float, int, Readable, str]] = []
    for number, item in enumerate(_found(code)):
        odd, tree = oddness(item.text, code)
        judged.append((item.cost + odd, number, item, ast.dump(tree)))
    distinct: dict[str, Readable] = {}
    for cost, _, item, dump in sorted(judged):
        distinct.setdefault(dump, item._replace(cost=cost))
    return list(distinct.values())[:limit]


def _found(code: str) -> Iterator[Readable]:
    until = time.monotonic() + _SECONDS_MAX
    numbers = itertools.count()
    visited = {code}
    best = float("inf")
    queue: list[_Open] = []
    for start in _starts(code):
        visited.add(start.text)
        stop = compiler_message(start.text)
        if stop is None:
            best = min(best, start.cost)
            yield start
        else:
            heapq.heappush(queue, _Open(start.cost, next(numbers), start.text, stop, start.done, 0))
    trials = 0
    while queue and trials < _TRIALS_MAX and time.monotonic() < until:
        node = heapq.heappop(queue)
        if node.cost > best + _SLACK:
            return
        draft = Draft(node.text, node.stop)
        for change in sorted(_changes(draft), key=lambda change: change.cost):
            cost = node.cost + change.cost
            if (
                cost > best + _SLACK
                or trials >= _TRIALS_MAX
                or (not trials % 16 and time.monotonic() > until)
            ):
                break
            if change.text in visited:
                continue
            visited.add(change.text)
            trials += 1
            stop = compiler_message(change.text)
            done = (*node.done, change.done)
            if stop is None:
                best = min(best, cost)
                yield Readable(change.text, cost, done)
            elif node.depth + 1 < CHANGES_MAX and _further(change.text, stop, draft):
                heapq.heappush(queue, _Open(cost, next(numbers), change.text, stop, done, node.depth + 1))


def _further(text: str, stop: CompilerMessage, before: Draft) -> bool:
    """Return whether Python now reads further, or has one mistake fewer to report.

    An unclosed bracket is reported where it was opened. Python reports an unterminated string or an unclosed bracket
    before any other mistake, even if it is further down. So the next message may be about an earlier line.
    """
    after = Draft(text, stop)
    if any(part in before.message and part not in stop.message for part in _REPORTED_FIRST):
        return True
    if "never closed" in stop.message and "never closed" not in before.message:
        return after.left[0] < before.left[0]
    return after.left < before.left


def _starts(code: str) -> Iterator[Readable]:
    """Yield the draft, and the draft without the text around the code, in Python's words, or both."""
    yield Readable(code, 0.0, ())
    plain, done, cost = code, [], 0.0
    for _ in range(4):
        reading = next(iter(readings.readings(plain)), None)
        if reading is None:
            break
        plain, cost = reading[0], cost + 0.1
        done.append(reading[1])
        yield Readable(plain, 0.2 + cost, tuple(done))
    yield from _in_python(code, 0.0, ())
    if done:
        yield from _in_python(plain, 0.2 + cost, tuple(done))


def _in_python(text: str, cost: float, done: tuple[str, ...]) -> Iterator[Readable]:
    """Yield the text with all habits of other languages rewritten at once, if there are several."""
    habits: dict[str, None] = {}
    for row in (row for _ in range(2) for row in readings.REWRITES if row.cost <= 0.5):
        splices = readings.matches(row, text)
        if splices:
            text = readings.spliced(text, splices)
            habits[row.name] = None
    if len(habits) > 1:
        yield Readable(
            text, cost + 0.3 * len(habits), (*done, "code of another language is written as in Python")
        )


def _changes(draft: Draft) -> Iterable[Repair]:
    for kind in _KINDS_OF_CHANGES:
        yield from spared(_from(kind, draft), kind.__qualname__)


def _from(kind: Callable[[Draft], Iterable[Repair]], draft: Draft) -> Iterator[Repair]:
    # Called inside of the iterator, so that `spared` sees what the call itself raises.
    yield from kind(draft)


def _rewritten(draft: Draft) -> Iterator[Repair]:
    """Yield rewrites of other languages' habits: everywhere, and near the compiler's stop only."""
    for row, splices in readings.rewrites(draft.text):
        done = f"code written as in another language (`{row.name}`) is written as in Python"
        near = any(abs(draft.where(start) - draft.line) <= 1 for start, _, _ in splices)
        yield Repair(readings.spliced(draft.text, splices), row.cost + (0 if near else 0.5), done)
        if len(splices) > 1:
            here = [splice for splice in splices if draft.where(splice[0]) == draft.line]
            if here:
                yield Repair(readings.spliced(draft.text, here), row.cost + 0.1, done)


#: In the order in which equally likely changes are tried.
_KINDS_OF_CHANGES: tuple[Callable[[Draft], Iterable[Repair]], ...] = (
    _rewritten,
    changes.hinted_changes,
    changes.indent_changes,
    delimiters.bracket_changes,
    delimiters.quote_changes,
    changes.token_changes,
)


def repairs(code: str, limit: int = 10, known: Container[str] = ()) -> list[tuple[str, str, float]]:
    """Return texts near a draft that compile: the code, the changes, and a rank of 0 to 1; best first.

    A text that uses well-known names without importing them comes first with the imports, then without them.

    known: Names that are already defined, such as a notebook's.
    """
    ranked_texts = []
    for item in nearest(code, limit):
        rank = max(0.05, 0.95 - 0.15 * item.cost)
        done = ", and ".join(item.done)
        sentence = f"Python can read it now: {done}."
        tree = oddness(item.text)[1]
        unknown = (name for name in unknown_names(tree) if name not in known)
        lines = [line for name in unknown if (line := import_for(name)) is not None]
        if lines:
            source = Source(item.text, tree)
            imports = source.add_import(source.newline.join(lines))
            ranked_texts.append(
                (
                    apply_edits(item.text, imports),
                    f"{sentence[:-1]}, and the names that it uses are imported.",
                    rank,
                )
            )
        ranked_texts.append((item.text, sentence, rank - 0.01 * bool(lines)))
    return ranked_texts
