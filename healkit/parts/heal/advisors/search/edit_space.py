"""Edits that a search tries, likeliest first, and why those.

A baseline is the behaviour of the code before any patch; it says which lines are suspicious. The single edits are made
lazily. Each pair of an operator and a node waits in a heap under the best score that its changes could have. It is
expanded when nothing better is left. So the first candidates are available at once, however long the program is.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import heapq
import json
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from healkit.core.contracts.patches import Check, Edit, Observed, apply_edits, difference
from healkit.core.crossing import values
from healkit.parts.heal.advisor import Case, Workbench
from healkit.parts.heal.advisors.search.operators import TABLE
from healkit.parts.heal.advisors.search.operators.definition import Operator
from healkit.parts.heal.advisors.search.program import Change, Hints, Program, constants, frame_columns


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """Variant of a code: its edits, how likely it is, and the names of the operators that made it."""

    edits: tuple[Edit, ...]
    score: float
    prior: float
    made_by: tuple[str, ...]
    guard: bool = False

    @property
    def size(self) -> int:
        """Number of characters that it removes and adds."""
        return sum(edit.end - edit.start + len(edit.text) for edit in self.edits)


class EditSpace:
    """Single edits of a program; iterates over candidates in the order of their scores.

    Candidates with the same resulting text count once. The order depends only on the code, the hints and the suspicion.

    seen: Hashes of texts to leave out; yielded ones are added.
    """

    def __init__(self, program: Program, suspicion: Suspicion, seen: set[int] | None = None) -> None:
        self._program, self._suspicion = program, suspicion
        self._seen = seen if seen is not None else set()
        self._seen.add(hash(program.text))
        self._heap: list[tuple[float, int, Candidate | tuple[Operator, ast.AST]]] = []
        self._count = 0
        by_type: dict[type[ast.AST], list[Operator]] = {}
        for node in program.nodes:
            kind = type(node)
            if kind not in by_type:
                by_type[kind] = [row for row in TABLE if issubclass(kind, row.nodes)]
            most = suspicion.most(program, node) if by_type[kind] else 0.0
            for row in by_type[kind]:
                self._push(row.prior * row.most * most, (row, node))

    def __iter__(self) -> Iterator[Candidate]:
        while self._heap:
            _, _, item = heapq.heappop(self._heap)
            if not isinstance(item, Candidate):
                self._open(*item)
            elif self._is_new(item):
                yield item

    def _is_new(self, candidate: Candidate) -> bool:
        """Return whether its text is new; tested this late because most candidates are never drawn."""
        key = hash(apply_edits(self._program.text, list(candidate.edits)))
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _push(self, score: float, item: Candidate | tuple[Operator, ast.AST]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (-score, self._count, item))

    def _open(self, row: Operator, node: ast.AST) -> None:
        suspicion: dict[int, float] = {}  # by line of the change; most are at the node's own line
        for change in self._changes(row, node):
            prior = row.prior * min(change.weight, row.most)
            if change.line not in suspicion:
                suspicion[change.line] = self._suspicion.of(self._program, node, change.line)
            score = prior * suspicion[change.line]
            self._push(score, Candidate(change.edits, score, prior, (row.name,), change.guard))

    def _changes(self, row: Operator, node: ast.AST) -> Iterator[Change]:
        try:
            yield from row.make(self._program, node)
        except Exception:  # noqa: BLE001 - e.g. a SyntaxError: a part may not parse by itself
            return


def normalized_code(text: str) -> Any:
    """Return what texts with the same syntax tree have in common; the text itself if it does not parse."""
    try:
        return ast.dump(ast.parse(text), annotate_fields=False)
    except (SyntaxError, ValueError):
        return text


# The baseline: how the code behaves before any patch.

#: How many checks of a kind are observed, how many of those that do not end, and how many for a variant.
_WATCHED, _WATCHED_HANGING, _WATCHED_AGAIN = 10, 1, 3
#: Time limit of a plausible patch on an input near those of the checks: bounds in seconds, and a part of the longest
#: passing check's time under observation. An observed run takes several times as long as a plain run.
_PROBE_LEAST_S, _PROBE_MOST_S, _PROBE_WATCHED = 0.03, 0.5, 0.25
#: How many wrong cells of a table count.
_CELLS_MAX = 3
_NO_PROGRAM = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclasses.dataclass(frozen=True)
class Baseline:
    """Code and its behaviour before any patch.

    failing, passing: Its checks, in the order in which candidates run on them, the failing ones first.
    before: Their outcomes by letter (`Workbench.score`).
    wrong_results: Checks whose result was wrong, each expecting that wrong result, so that a change of it is seen.
    ran: Lines that it executed.
    hints: Facts that edits are made of.
    probe_s: Time limit of a patch on other inputs.
    """

    code: str
    failing: list[Check]
    passing: list[Check]
    before: str
    wrong_results: list[Check]
    suspicion: Suspicion
    ran: frozenset[int]
    hints: Hints
    probe_s: float

    @property
    def checks(self) -> list[Check]:
        """Return all checks, the failing ones first."""
        return self.failing + self.passing

    @property
    def fails_loudly(self) -> bool:
        """True if every failure is an exception: no result was wrong, and all runs ended."""
        return not set(self.before) & set("wt")

    @functools.cached_property
    def evidence(self) -> int:
        """Number of failing checks with a known result; a table counts for each of its wrong cells, up to three.

        Half of all edits give the same truth value, so that those count once.
        """
        wrong = {json.dumps(check.arguments): check.expected for check in self.wrong_results}
        specified = [check for check in self.failing if check.known] or self.failing[:1]
        if all(isinstance(check.expected, bool) and not check.raises for check in specified):
            return len({check.expected for check in specified})
        return sum(_cells(check, wrong.get(json.dumps(check.arguments))) for check in specified)

    @property
    def hangs(self) -> bool:
        """True if it ended on no check."""
        return set(self.before) == {"t"}

    def space(self, seen: set[int]) -> EditSpace | None:
        """Return its single edits except those seen before; None if it does not parse."""
        return _space(self.code, self.hints, self.suspicion, seen)

    def space_of(self, bench: Workbench, code: str, seen: set[int], *, watched: bool) -> EditSpace | None:
        """Return the single edits of a variant.

        watched: Localize its fault again, which takes time: a variant that fails elsewhere or later may have its
            mistake there.
        """
        if not watched:
            return _space(code, self.hints, self.suspicion, seen)
        observed = bench.observe(code, self.failing[:_WATCHED_AGAIN] + self.passing[:_WATCHED_AGAIN])
        failed = [observation for observation in observed if observation.result.outcome != "passed"]
        passed = [observation for observation in observed if observation.result.outcome == "passed"]
        types = {**self.hints.types, **types_seen(observed)}
        hints = dataclasses.replace(self.hints, types=types)
        return _space(code, hints, Suspicion(failed, passed), seen)


def parses(code: str) -> bool:
    """Return whether a text parses."""
    try:
        Program(code)
    except _NO_PROGRAM:
        return False
    return True


def observe_baseline(case: Case, bench: Workbench, code: str) -> Baseline | None:
    """Run code on the case's checks, some of them watched; None if there is nothing to search."""
    checks = list(case.checks)
    if not checks or not parses(code):
        return None
    letters = dict(bench.score(code, [()], checks, every=True)).get(0, "-" * len(checks))
    failing = [(check, letter) for check, letter in zip(checks, letters, strict=True) if letter != "."]
    if not failing:
        return None
    # Checks that hang come last, large ones before them: most variants fail a check that costs less.
    failing.sort(key=lambda pair: (pair[1] in "td", _size(pair[0])))
    passing = [check for check, letter in zip(checks, letters, strict=True) if letter == "."]
    passing.sort(key=_size)
    # Checks that do not end are observed only if nothing else fails: observation may use up their time.
    watched = [check for check, letter in failing if letter not in "td"][:_WATCHED]
    watched = watched or [check for check, _ in failing[:_WATCHED_HANGING]]
    observed = bench.observe(code, watched + passing[:_WATCHED])
    failed, passed = observed[: len(watched)], observed[len(watched) :]
    suspicion = Suspicion(failed, passed)
    if "t" in letters:
        suspicion.lift(endless_loops(Program(code), failed), ENDLESS)
    longest_s = max((observation.result.duration_s for observation in passed), default=0.0)
    return Baseline(
        code,
        [check for check, _ in failing],
        passing,
        "".join(letter for _, letter in failing) + "." * len(passing),
        _wrong_results(watched, failed),
        suspicion,
        frozenset(line for observation in observed for line in observation.lines),
        _hints(case, [check for check, _ in failing], passing, failed, passed),
        min(max(_PROBE_LEAST_S, _PROBE_WATCHED * longest_s), _PROBE_MOST_S),
    )


def _wrong_results(watched: Sequence[Check], failed: Sequence[Observed]) -> list[Check]:
    return [
        msgspec.structs.replace(check, origin="passing", known=True, expected=observation.result.value)
        for check, observation in zip(watched, failed, strict=True)
        if observation.result.outcome == "wrong" and not observation.result.failure
    ]


def _hints(
    case: Case,
    failing: Sequence[Check],
    passing: Sequence[Check],
    failed: Sequence[Observed],
    passed: Sequence[Observed],
) -> Hints:
    raised = dict.fromkeys(
        observation.result.failure.partition(":")[0] for observation in failed if observation.result.failure
    )
    return Hints(
        constants([*failing, *passing], case.answers),
        tuple(dict.fromkeys(check.raises for check in failing if check.raises)),
        types=types_seen([*failed, *passed]),
        peers=tuple(peer.code for peer in case.peers),
        raised=tuple(raised),
        columns=frame_columns([*failing, *passing]),
    )


def _space(code: str, hints: Hints, suspicion: Suspicion, seen: set[int]) -> EditSpace | None:
    try:
        return EditSpace(Program(code, hints), suspicion, seen)
    except _NO_PROGRAM:
        return None


def _cells(check: Check, wrong: object) -> int:
    """Return how many values of an expected frame or array were wrong, at least one and at most three."""
    if not values.has_tags(check.expected):
        return 1
    expected, actual = _items(values.as_parts(check.expected)), _items(values.as_parts(wrong))
    if len(expected) != len(actual):
        return min(max(len(expected), 1), _CELLS_MAX)
    wrong_cells: int = sum(map(operator.ne, expected, actual))
    return min(max(wrong_cells, 1), _CELLS_MAX)


def _items(value: object) -> list[object]:
    if isinstance(value, dict):
        value = list(value.values())
    return [item for part in value for item in _items(part)] if isinstance(value, list) else [value]


def _size(check: Check) -> int:
    return len(check.call) or len(repr(check.arguments))


# Fault localization, by Ochiai's coefficient over passing and failing checks (Abreu et al., "On the Accuracy of
# Spectrum-based Fault Localization", 2007). If `f` of the `F` failing checks and `p` passing ones execute a line, it is
# f / sqrt(F * (f + p)). Lines of a traceback are more suspicious, the innermost most.

#: Added for the innermost line of a traceback; each frame further out adds half of that.
TRACEBACK_BONUS = 0.3
#: Suspicion of every line, executed or not: a check that ends early may never have reached the mistake.
FLOOR = 0.05
#: Suspicion of every line of a loop that does not end.
ENDLESS = 0.7


class Suspicion:
    """Suspicion of each line, from 0 to 1.3, by the lines that failing and passing checks executed."""

    def __init__(self, failing: Sequence[Observed], passing: Sequence[Observed] = ()) -> None:
        in_failing, in_passing = Counter[int](), Counter[int]()
        for counter, group in ((in_failing, failing), (in_passing, passing)):
            for observation in group:
                counter.update(set(observation.lines))
        self.lines: dict[int, float] = {
            line: in_failing[line] / math.sqrt(len(failing) * (in_failing[line] + in_passing[line]))
            for line in in_failing.keys() | in_passing.keys()
            if failing
        }
        bonus: dict[int, float] = {}
        for observation in failing:
            for away, line in enumerate(reversed(observation.failed_lines)):
                bonus[line] = max(bonus.get(line, 0.0), TRACEBACK_BONUS / 2 ** min(away, 3))
        for line, more in bonus.items():
            self.lines[line] = self.lines.get(line, 0.0) + more

    def lift(self, lines: Iterable[int], least: float) -> None:
        """Make lines at least this suspicious, whether they were executed or not."""
        for line in lines:
            self.lines[line] = max(self.lines.get(line, 0.0), least)

    def of(self, program: Program, node: ast.AST, line: int = 0) -> float:
        """Return the suspicion of a node's own lines, or of the first line of its statement; at least `FLOOR`."""
        first = line or getattr(node, "lineno", 0)
        last = (
            first
            if line or (isinstance(node, ast.stmt) and hasattr(node, "body"))
            else getattr(node, "end_lineno", first)
        )
        scores = [
            self.lines[line_number]
            for line_number in range(first, (last or first) + 1)
            if line_number in self.lines
        ]
        if not scores and isinstance(node, ast.AST) and node in program.parents:
            statement = program.statement(node)
            scores = [
                self.lines[line_number] for line_number in (statement.lineno,) if line_number in self.lines
            ]
        return FLOOR + max(scores, default=0.0)

    def most(self, program: Program, node: ast.AST) -> float:
        """Return an upper bound of `of` for a node and everything in it."""
        if isinstance(node, ast.stmt):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            return max(
                self.of(program, node),
                FLOOR + max((self.lines.get(line, 0.0) for line in lines), default=0.0),
            )
        return self.of(program, node)


def types_seen(observed: Sequence[Observed]) -> dict[str, frozenset[str]]:
    """Return the types of names over all checks: `function.name` → type names."""
    type_names: dict[str, set[str]] = {}
    for observation in observed:
        for name, kinds in observation.types.items():
            type_names.setdefault(name, set()).update(kinds)
    return {name: frozenset(kinds) for name, kinds in type_names.items()}


def endless_loops(program: Program, failed: Sequence[Observed]) -> set[int]:
    """Return all lines of the `while` loops that ran: the line that should end one may be on an unused path."""
    executed_lines = {line for observation in failed for line in observation.lines}
    loop_lines: set[int] = set()
    for loop in program.nodes:
        if isinstance(loop, ast.While):
            lines = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
            loop_lines.update(lines if executed_lines & set(lines) else ())
    return loop_lines


# Several edits at once. A tool with two mistakes passes its checks only when both are fixed. But fixing one is often
# visible: a failing check passes and no check breaks, or the failure becomes another one. Such variants are bases. The
# single edits of each base are tried in the order of their scores times the base's progress. A variant of a base that
# gets further is a base in turn.

#: How many bases are used, and how many of them at one place or with the same outcomes.
_BASES, _OF_A_KIND = 24, 3
#: A failure that became another one is worth less than a check that passes.
_OTHER_FAILURE = 0.25


@dataclasses.dataclass(frozen=True)
class BaseVariant:
    """Variant to search from; `gain` is its progress over the original code, up to 2."""

    code: str
    candidate: Candidate
    gain: float


def gain(before: str, after: str, failing: int) -> float:
    """Return the progress from one set of outcomes to another: 0 if a check broke or nothing changed.

    before, after: Outcomes by letter (`Workbench.score`), the failing checks first.
    failing: Their number.
    """
    if any(letter != "." for letter in after[failing:]):
        return 0.0
    passed = sum(letter == "." for letter in after[:failing])
    if passed:
        return 1.0 + passed / max(failing, 1)
    worse = {"w": 0, "e": 1, "t": 2, "d": 2, "n": 2, "-": 3}
    better = sum(
        worse[b] > worse[a] for b, a in zip(before[:failing], after[:failing], strict=True) if a != "."
    )
    return (
        _OTHER_FAILURE
        if better and better == sum(b != a for b, a in zip(before, after, strict=True))
        else 0.0
    )


def bases(code: str, tried: Sequence[tuple[Candidate, str]], before: str, failing: int) -> list[BaseVariant]:
    """Return the variants to search from, best first."""
    scored = []
    for candidate, after in tried:
        nearer = gain(before, after, failing)
        if nearer:
            scored.append((nearer * candidate.score**0.3, nearer, after, candidate))
    scored.sort(key=lambda one: -one[0])
    chosen_of_kind: Counter[object] = Counter()
    chosen = []
    for _, nearer, after, candidate in scored:
        kinds = (after, (after, candidate.edits[0].start // 40))
        if chosen_of_kind[kinds[1]] >= _OF_A_KIND or chosen_of_kind[kinds[0]] >= _BASES // 2:
            continue
        chosen_of_kind.update(kinds)
        chosen.append(BaseVariant(apply_edits(code, list(candidate.edits)), candidate, nearer))
        if len(chosen) >= _BASES:
            break
    return chosen


class HigherOrderSpace:
    """Single edits of several bases as edits of the original code, likeliest first; bases may be added later."""

    def __init__(self, code: str, space_of: Callable[[str], EditSpace | None]) -> None:
        self._code, self._space_of = code, space_of
        self._heap: list[tuple[float, int, Candidate, Iterator[Candidate], BaseVariant]] = []
        self._count = 0

    def add(self, base: BaseVariant) -> None:
        """Search also from that base."""
        space = self._space_of(base.code)
        if space is not None:
            self._next(iter(space), base)

    def __iter__(self) -> Iterator[Candidate]:
        while self._heap:
            _, _, candidate, source, base = heapq.heappop(self._heap)
            self._next(source, base)
            yield candidate

    def _next(self, source: Iterator[Candidate], base: BaseVariant) -> None:
        step = next(source, None)
        if step is None:
            return
        text = apply_edits(base.code, list(step.edits))
        score = step.score * base.gain * base.candidate.score**0.3
        both = Candidate(
            (difference(self._code, text),),
            score,
            step.prior * base.candidate.prior,
            base.candidate.made_by + step.made_by,
            step.guard or base.candidate.guard,
        )
        self._count += 1
        heapq.heappush(self._heap, (-score, self._count, both, source, base))


def pairs(best: Sequence[Candidate], most: int) -> Iterator[Candidate]:
    """Yield pairs of the first `most` single edits that do not touch each other, likeliest first."""
    first = best[:most]
    scored_pairs = []
    for place, candidate in enumerate(first):
        apart = [partner for partner in first[place + 1 :] if _apart(candidate, partner)]
        scored_pairs += [(candidate.score * partner.score, candidate, partner) for partner in apart]
    scored_pairs.sort(key=lambda pair: -pair[0])
    for score, candidate, partner in scored_pairs:
        yield Candidate(
            candidate.edits + partner.edits,
            score,
            candidate.prior * partner.prior,
            candidate.made_by + partner.made_by,
            candidate.guard or partner.guard,
        )


def _apart(one: Candidate, other: Candidate) -> bool:
    return all(a.end < b.start or b.end < a.start for a in one.edits for b in other.edits)


def passed_first(outcomes: str) -> int:
    """Return how many checks passed before the first that did not."""
    return len(outcomes) - len(outcomes.lstrip("."))


def progress(outcomes: str, before: str) -> float:
    """Return how far a variant got: past the first failing checks, or at least to another failure."""
    return passed_first(outcomes) or 0.5 * (outcomes[:1] == "w" and before[:1] != "w")


def timed_out(tried: Sequence[tuple[Candidate, str]], passed: int = 0) -> list[Candidate]:
    """Return candidates that only ran out of time, after at least `passed` passed checks; nearest first."""
    timeouts = [
        pair
        for pair in tried
        if not pair[1].strip("t.-") and "t" in pair[1] and passed_first(pair[1]) >= passed
    ]
    timeouts.sort(key=lambda pair: (-passed_first(pair[1]), -pair[0].score))
    return [candidate for candidate, _ in timeouts]
