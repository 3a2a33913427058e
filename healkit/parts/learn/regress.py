"""`hk.regress`: recorded runs again, with other code.

Those that tell most come first, so that a fault shows early where time is short (`order`). Each run has its recorded
arguments; its calls are answered from the record, and none is made. So it is on record as a trial, and counts for
nothing.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import heapq
import itertools
import json
import math
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from healkit.core.contracts.cassette import Tape
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.rendering import plain
from healkit.core.rendering.document import Card, Fold, Line, Span, Table
from healkit.core.rendering.execution_card import result_text
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.core.runtime.background import no_output
from healkit.core.runtime.calls import Provider
from healkit.core.runtime.execution import Execution, arguments_of, nested_grants, result_of
from healkit.core.runtime.executor import ExecutionRequest
from healkit.errors import ArgumentsInvalid, ConfigError, ViewError
from healkit.parts.learn.facts import NOT_ITS_OWN
from healkit.parts.trials.cassette import Replay, cassette_of

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter

    from healkit.core.runtime.runner import Runner
    from healkit.core.store.log_reader import Log
    from healkit.core.store.models import ExecutionLog

#: Rows of the log that are looked at, newest first.
_ROWS_MAX = 1000
#: A re-run may take so many times as long as the run did, and at least so long.
_LIMIT_TIMES, _LIMIT_LEAST_S = 10.0, 2.0
_SHOWN_MAX = 20

#: `same`; `fixed`: it failed then, and returns now; `differs`: another value, another exception, or it fails now;
#: `as_active`: it differs from the record as the active code does too, so not by this code (chance, or an earlier fix);
#: `undecided`: it made a call that is not on record, would write, or would read a file that was not named.
Outcome = Literal["same", "fixed", "differs", "as_active", "undecided"]


@dataclasses.dataclass(frozen=True)
class Rerun:
    """Recorded run that was run again: what it gave then and gives now, each in one line."""

    log_id: int
    outcome: Outcome
    recorded: str
    now: str
    duration_ms: float


@dataclasses.dataclass(frozen=True)
class RegressReport:
    """Report of re-runs, in the order in which they were made.

    label: the tool and revision. reruns: those that were made. not_reached: log rows that the budget had no time for.
    left_out: how many runs the log does not hold whole.
    """

    label: str
    reruns: tuple[Rerun, ...]
    not_reached: tuple[int, ...]
    left_out: int
    duration_s: float

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """Number of re-runs of each outcome."""
        return Counter(rerun.outcome for rerun in self.reruns)

    @property
    def faults(self) -> tuple[Rerun, ...]:
        """Runs that differ from the record, by this code."""
        return tuple(rerun for rerun in self.reruns if rerun.outcome == "differs")

    @property
    def first_fault_after(self) -> int | None:
        """Number of re-runs until the first that differs; None where none does."""
        numbers = (number for number, rerun in enumerate(self.reruns, 1) if rerun.outcome == "differs")
        return next(numbers, None)

    def __str__(self) -> str:
        return text_of(self._card())

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return html_of(self._card())

    def _card(self) -> Card:
        faults, counts = self.faults, self.counts
        ended = f"{plain.count(len(faults), 'recorded run')} of {len(self.reruns):,} differ{'s' * (len(faults) == 1)}"
        title = f"{self.label}: {ended if faults else 'no recorded run differs'}"
        words = {
            "same": "as recorded",
            "fixed": "failed then, now not",
            "as_active": "differ with the active code too",
        }
        phrases = [f"{counts[outcome]:,} {text}" for outcome, text in words.items() if counts[outcome]]  # type: ignore[index]  # outcomes
        phrases += (
            [f"{counts['undecided']:,} undecided: a call or a file is not there"]
            if counts["undecided"]
            else []
        )
        phrases += [f"first difference after {self.first_fault_after}"] if faults else []
        phrases += [f"{len(self.not_reached):,} not reached"] if self.not_reached else []
        phrases += [f"{self.left_out:,} not recorded whole"] if self.left_out else []
        lines = [Line(Span(", ".join(phrases) or "nothing on record to run again", "quiet"))]
        rows = [(f"#{rerun.log_id}", rerun.recorded, rerun.now) for rerun in (*faults, *self._of("fixed"))]
        table = Table(("row", "recorded", "now"), rows[:_SHOWN_MAX])
        more = (
            [Line(Span(f"… and {len(rows) - _SHOWN_MAX:,} more", "quiet"))] if len(rows) > _SHOWN_MAX else []
        )
        tone: Literal["bad", "good"] = "bad" if faults else "good"
        return Card(
            title, "✗" if faults else "✓", tone, lines, [Fold("runs", (table, *more))] if rows else []
        )

    def _of(self, outcome: Outcome) -> tuple[Rerun, ...]:
        return tuple(rerun for rerun in self.reruns if rerun.outcome == outcome)


class Regression:
    """Re-runs of one tool's recorded runs; made for one report."""

    def __init__(
        self,
        runner: Runner,
        log: Log,
        entry: VaultEntry,
        providers: Mapping[str, Provider],
        persona: str,
        files: tuple[str, ...] = (),
    ) -> None:
        self._runner, self._entry, self._persona, self._files = runner, entry, persona, files
        page = log.query(tool=entry.tool_name, persona=persona, tried=False, refused=False, limit=_ROWS_MAX)
        self._left_out = 0
        different: dict[str, ExecutionLog] = {}
        for row in page.rows:
            if row.status == "RUNNING" or row.error_code in NOT_ITS_OWN:
                continue
            if not isinstance(row.arguments, dict):
                self._left_out += 1
                continue
            different.setdefault(json.dumps(row.arguments, sort_keys=True), row)
        self._rows = list(different.values())
        self._tape = Tape(cassette_of(log, self._rows, entry, providers))

    def report(self, code: str | None, budget_s: float) -> RegressReport:
        """Run until the budget is spent, and return the report; called by `Healkit.regress`."""
        if not budget_s > 0:
            raise ConfigError(f"budget_s={budget_s!r} must be greater than 0 seconds.")
        began, reruns = time.monotonic(), []
        codes = [self._entry.code] if code is None else [self._entry.code, code]
        ordered = [self._rows[at] for at in order([recorded_of(row) for row in self._rows], *codes)]
        left_out, reached = self._left_out, 0
        for row in ordered:
            left_s = budget_s - (time.monotonic() - began)
            if left_s <= 0:
                break
            try:
                rerun = self._rerun(row, code, left_s)
            except (ArgumentsInvalid, ViewError):  # not all of them are there
                left_out += 1
            else:
                if rerun is None:
                    break
                reruns.append(rerun)
            reached += 1
        missed = tuple(int(row.id or 0) for row in ordered[reached:])
        return RegressReport(self._entry.label, tuple(reruns), missed, left_out, time.monotonic() - began)

    def _rerun(self, row: ExecutionLog, code: str | None, left_s: float) -> Rerun | None:
        """Run it again; None where the budget ended it."""
        limit_s = max(_LIMIT_LEAST_S, _LIMIT_TIMES * (row.duration_ms or 0.0) / 1000)
        now = self._perform(row, code, min(limit_s, left_s))
        if left_s < limit_s and now.failure is not None and now.failure.code == "TOOL_TIMEOUT":
            return None
        outcome = self._compared(row, now)
        if outcome == "differs" and code is not None and _equal(now, self._perform(row, None, limit_s)):
            outcome = "as_active"
        then = row.ename or plain.one_line(row.result_summary or "", 60)
        return Rerun(int(row.id or 0), outcome, then, _said(now), now.duration_ms or 0.0)

    def _perform(self, row: ExecutionLog, code: str | None, timeout_s: float) -> Execution:
        return self._runner.perform(
            ExecutionRequest(
                self._entry.tool_name,
                self._persona,
                arguments_of(row),
                timeout_s=timeout_s,
                origin="trial",
                on_output=no_output,
                code=self._entry.code if code is None else code,
                within=nested_grants(row),
                record=False,
                replay=Replay.of(self._tape, str(row.id)),
                files=None if code in (None, self._entry.code) else self._files,
            )
        )

    def _compared(self, row: ExecutionLog, now: Execution) -> Outcome:
        failure = now.failure
        if failure is not None:
            writes = self._entry.grants.write and failure.ename in ("OSError", "PermissionError")
            if writes or failure.code == "CALL_NOT_ON_RECORD":
                return "undecided"
            return "same" if row.status == "FAILURE" and failure.ename == row.ename else "differs"
        if row.status == "FAILURE":
            return "fixed"
        try:
            expected = values.kept(result_of(row))
        except ValueError:  # it was cut: only that it returned is known
            return "same"
        return "same" if values.meets(expected, now.value) else "differs"


def recorded_of(row: ExecutionLog) -> Recorded:
    """Return a row as the order takes it; its frames count by their previews."""
    arguments = row.arguments if isinstance(row.arguments, dict) else {}
    succeeded = row.status == "SUCCESS"
    return Recorded(arguments, succeeded, (row.result_summary if succeeded else row.ename) or "")


def _equal(one: Execution, other: Execution) -> bool:
    if one.failure is None or other.failure is None:
        return one.failure is other.failure and values.meets(values.kept(one.value), other.value)
    return one.failure.ename == other.failure.ename


def _said(execution: Execution) -> str:
    text = result_text(execution) if execution.failure is None else execution.failure.summary
    return plain.one_line(text, 60)


# The order in which recorded runs are re-run.
#
# Each run has features: types, signs and sizes of the parts of its arguments and of its result, the exception that it
# raised, and which literals of the code its arguments are at (an `if points >= 90` is decided by a run with 89, 90 or
# 91). The next run is the one whose features were seen least so far: a feature counts half as much each time it was
# seen. This is "additional" coverage (Rothermel et al., "Prioritizing Test Cases For Regression Testing", IEEE TSE
# 2001) with features in the place of statements, so nothing has to run first. benchmarks/learn/regress.py measures it.


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
    """Recorded run, as far as its place in the order depends on it.

    arguments: as the log holds them, in JSON. outcome: the result as JSON text, or the name of the exception.
    """

    arguments: Mapping[str, Any]
    succeeded: bool
    outcome: str


def order(runs: Sequence[Recorded], *codes: str) -> list[int]:
    """Return the positions of all runs, those first that tell most together.

    Of runs that tell as much, the first given comes first. codes: the tool's code, and what is to take its place.
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
        except ValueError:  # it was cut, or is no JSON
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
    """Yield which literals a value, its length and its parts are at: a number within 1, a text that has it."""
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
    """Return the numbers and short texts in the codes; none of a code that Python cannot read."""
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
