"""The stages of one search, from what is known of the code to patches.

Each has what the one before found out: every single edit, likeliest first; then what only ran out of time, with more of
it; then two and more edits, from variants that got nearer.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Generator, Iterable, Iterator, Sequence

import msgspec

from healkit.contracts.healing import Attempt, Check, Edit, Observed, Patch, apply_edits
from healkit.healing.advisor import Case, Workbench
from healkit.healing.inputs import accepted
from healkit.healing.search.choosing import Plausible, Ranked, ranked
from healkit.healing.search.explaining import explain
from healkit.healing.search.ingredients import constants
from healkit.healing.search.localise import ENDLESS, Suspicion, endless_loops, types_seen
from healkit.healing.search.outcomes import late, leading, promise
from healkit.healing.search.program import Hints, Program
from healkit.healing.search.ranking import Candidate, Space, same_code
from healkit.healing.search.second_order import Base, Further, bases, pairs
from healkit.healing.search.vouching import UNCOMPARED, doubt

#: How many checks of a kind are watched, and how many of those that do not end.
_WATCHED, _WATCHED_HANGING = 10, 1
#: After the first plausible patch, others are looked for: for so many candidates, or as many as it took, within these
#: bounds and this part of the budget.
_MORE_LEAST, _MORE_LEAST_S, _MORE_MOST_S, _MORE_PART = 1200, 0.15, 4.0, 0.15
#: A likeliest patch that keeps less than this of what seemed right, and mends so few failing checks that it may do so
#: by chance, has so many further candidates looked at.
_KEPT_ENOUGH, _FEW, _LOOK_ON = 0.75, 2, 2500
#: How long plausible patches are run on an input near those of the checks.
_PROBE_LEAST_S, _PROBE_MOST_S = 0.03, 0.5
#: What part of the budget single edits may take while nothing is found, and what looking for bases may take.
_FIRST_PART, _BASES_PART = 0.6, 0.15
#: The most candidates looked at for bases, kept for pairs, and retried with more time.
_LOOKED_AT, _KEPT, _SLOW = 3000, 400, 40
#: Of those how many are given really long, in seconds and as a part of the budget: a right answer may take a second.
_SLOWEST, _SLOWEST_S, _SLOWEST_PART = 4, 5.0, 0.15
#: Of how many single edits pairs are made: of the likeliest, and of those that change a result; how many of these are
#: gone on from, and how many pairs there are of a kind.
_PAIRED, _PAIRED_TELLING, _TELLING_BASES, _PAIRS = 64, 240, 24, 20_000


@dataclasses.dataclass
class _Tried:
    """What became of the candidates of one stage."""

    candidates: list[Candidate] = dataclasses.field(default_factory=list)
    outcomes: dict[int, str] = dataclasses.field(default_factory=dict)


class Search:
    """One search: what is known of the code, and what was found so far. `begin` it, then take its `patches`."""

    def __init__(self, case: Case, bench: Workbench) -> None:
        self._case, self._bench = case, bench
        self._code = case.entry.code
        self._found: list[Plausible] = []
        self._seen: set[int] = set()
        self._same: set[str] = set()
        self._budget_s = bench.left_s

    def begin(self) -> bool:
        """Look at the code as it is; False where there is nothing to search."""
        try:
            Program(self._code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        checks = list(self._case.checks)
        if not checks:
            return False
        before = dict(self._bench.score(self._code, [()], checks, every=True)).get(0, "-" * len(checks))
        failing = [(check, letter) for check, letter in zip(checks, before, strict=True) if letter != "."]
        if not failing:
            return False
        # What hangs comes last, then what is large: most variants are refuted by something that costs less.
        failing.sort(key=lambda pair: (pair[1] in "td", _size(pair[0])))
        self._passing = [check for check, letter in zip(checks, before, strict=True) if letter == "."]
        self._passing.sort(key=_size)
        self._failing = [check for check, _ in failing]
        self._before = "".join(letter for _, letter in failing) + "." * len(self._passing)
        self._checks = self._failing + self._passing
        failed, passed = self._observe()
        self._suspicion = Suspicion(failed, passed)
        if "t" in before:
            self._suspicion.lift(endless_loops(Program(self._code), failed), ENDLESS)
        self._wrong = [
            msgspec.structs.replace(check, known=True, expected=one.result.value)
            for check, one in zip(self._watched, failed, strict=True)
            if one.result.outcome == "wrong" and not one.result.failure
        ]
        longest_s = max((one.result.duration_s for one in passed), default=0.0)
        self._probe_s = min(max(_PROBE_LEAST_S, longest_s), _PROBE_MOST_S)
        peers = tuple(peer.code for peer in self._case.peers)
        errors = tuple(dict.fromkeys(check.raises for check in self._failing if check.raises))
        raised = dict.fromkeys(one.result.failure.partition(":")[0] for one in failed if one.result.failure)
        self._hints = Hints(
            constants(self._failing + self._passing),
            errors,
            types_seen([*failed, *passed]),
            peers,
            raised=tuple(raised),
        )
        return True

    def _observe(self) -> tuple[list[Observed], list[Observed]]:
        """Some of the failing and of the passing checks, watched; being watched may take one's time away."""
        letters = zip(self._failing, self._before, strict=False)
        ends = [check for check, letter in letters if letter not in "td"]
        failing = self._watched = ends[:_WATCHED] or self._failing[:_WATCHED_HANGING]
        observed = self._bench.observe(self._code, failing + self._passing[:_WATCHED])
        return observed[: len(failing)], observed[len(failing) :]

    def patches(self) -> Generator[Patch, Attempt | None, None]:
        """The three stages."""
        first = _Tried()
        space = iter(self._space(self._code) or ())
        self._try(space, first, part=_FIRST_PART)
        order = self._ranked()
        if order and order[0].kept < _KEPT_ENOUGH and len(self._failing) <= _FEW:
            # Even the likeliest breaks what seemed to be right: perhaps a less likely edit does not.
            self._try(itertools.islice(space, _LOOK_ON), first, part=_MORE_PART, enough=False)
            order = self._ranked()
        while (yield from self._proposed(order)):
            self._try(space, first)
            order = self._ranked()
        if not self._passed:
            yield from self._retry_slow(first)
            yield from self._go_on(first)
            self._try(space, first)
            yield from self._chosen()

    def rest(self) -> Iterator[Patch]:
        """What was found and not yet proposed, when time is up."""
        found, self._found = self._found, []
        for one in sorted(found, key=lambda one: -one.candidate.score):
            yield self._patch(one, one.candidate.score, doubt=UNCOMPARED)

    _passed = False

    def _space(self, code: str) -> Space | None:
        try:
            return Space(Program(code, self._hints), self._suspicion, self._seen)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def _try(
        self,
        source: Iterable[Candidate],
        tried: _Tried,
        *,
        part: float = 1.0,
        slow: bool = False,
        limit_s: float | None = None,
        enough: bool = True,
    ) -> None:
        """Try candidates until the source, the part of the budget, or (enough) patience after a success ends."""
        began = time.monotonic()
        most = began + part * self._budget_s
        offset = len(tried.candidates)
        passed_at: list[tuple[float, int]] = []

        def drawn() -> Iterator[tuple[Edit, ...]]:
            for candidate in source:
                tried.candidates.append(candidate)
                yield candidate.edits
                now = time.monotonic()
                if now > most or (
                    passed_at and self._looked_on(began, *passed_at[0], len(tried.candidates) - offset)
                ):
                    return

        for position, outcomes in self._bench.score(
            self._code, drawn(), self._checks, slow=slow, limit_s=limit_s
        ):
            tried.outcomes[offset + position] = outcomes
            if outcomes == "." * len(self._checks):
                self._keep(tried.candidates[offset + position])
                if enough and not passed_at:
                    passed_at.append((time.monotonic(), len(tried.candidates) - offset))

    def _looked_on(self, began: float, passed_at: float, passed_after: int, tried: int) -> bool:
        """Whether enough was tried after the first candidate that passed."""
        since = time.monotonic() - passed_at
        if since < _MORE_LEAST_S:
            return False
        most_s = min(max(_MORE_LEAST_S, passed_at - began + 2.0), _MORE_MOST_S, self._budget_s * _MORE_PART)
        return since > most_s or tried - passed_after >= max(_MORE_LEAST, passed_after)

    def _keep(self, candidate: Candidate) -> None:
        code = apply_edits(self._code, list(candidate.edits))
        if (same := same_code(code)) not in self._same:
            self._same.add(same)
            self._found.append(Plausible(code, candidate))
            self._passed = True

    def _chosen(self) -> Generator[Patch, Attempt | None, None]:
        """What was found since the last time, likeliest first."""
        yield from self._proposed(self._ranked())

    def _proposed(self, order: Sequence[Ranked]) -> Generator[Patch, Attempt | None, bool]:
        """Those patches; returns whether to look for more of the same.

        The loop sends what became of a patch. Where validation, which is stricter, let none of them pass, there is
        reason to go on; else the likeliest has been found, because the search came from there.
        """
        refused = 0
        for one in order:
            self._found.remove(one.patch)
            attempt = yield self._patch(one.patch, one.rank, doubt=doubt(self._code, one, len(self._failing)))
            refused += attempt is not None and attempt.verdict == "not_cured"
        return bool(order) and refused == len(order)

    def _ranked(self) -> list[Ranked]:
        checks = (self._passing, self._failing)
        loud, hangs = "w" not in self._before, set(self._before) == {"t"}
        accepts = functools.partial(accepted, self._case.entry)
        return ranked(
            self._bench, self._code, self._found, *checks, self._probe_s, accepts, loud=loud, hangs=hangs
        )

    def _patch(self, one: Plausible, rank: float, doubt: str) -> Patch:
        # Where it is known what is right on the failing input, a guard that gives it is no guard only.
        demanded = any(check.known for check in self._failing)
        return Patch(
            code=one.code,
            advisor="search",
            author="search",
            reason=explain(self._code, one.code, one.candidate.made_by),
            rank=rank,
            guard=one.candidate.guard and not demanded,
            doubt=doubt,
        )

    def _retry_slow(self, first: _Tried) -> Generator[Patch, Attempt | None, None]:
        """Once more, with more time, what failed on time alone; and once more, if it mended a check meanwhile."""
        slow = _Tried()
        self._try(late(self._with_outcomes(first))[:_SLOW], slow, part=0.2, slow=True)
        if not self._passed and (nearly := late(self._with_outcomes(slow), mended=1)):
            most_s = min(_SLOWEST_S, self._budget_s * _SLOWEST_PART)
            self._try(nearly[:_SLOWEST], _Tried(), part=0.3, limit_s=most_s)
        yield from self._chosen()

    def _with_outcomes(self, tried: _Tried) -> list[tuple[Candidate, str]]:
        return [(tried.candidates[place], outcomes) for place, outcomes in tried.outcomes.items()]

    def _go_on(self, first: _Tried) -> Generator[Patch, Attempt | None, None]:
        """Two edits and more."""
        further = Further(self._code, self._space)
        for base in self._bases(self._with_outcomes(first)):
            further.add(base)
        stage = _Tried()
        self._try(self._fed(further, stage), stage, part=0.8)
        yield from self._chosen()
        if not self._passed:
            best = sorted(first.candidates, key=lambda one: -one.score)[:_KEPT]
            self._try(pairs(best, _PAIRED), _Tried(), part=0.25)
            yield from self._chosen()
        if not self._passed and self._wrong:
            yield from self._from_telling(self._telling(first))

    def _from_telling(self, halves: list[Candidate]) -> Generator[Patch, Attempt | None, None]:
        """Pairs of such edits, then any edit beside one of them: the other half may show only with it."""
        self._try(itertools.islice(pairs(halves, _PAIRED_TELLING), _PAIRS), _Tried(), part=0.3)
        if not self._passed:
            further = Further(self._code, self._space)
            for half in halves[:_TELLING_BASES]:
                further.add(Base(apply_edits(self._code, list(half.edits)), half, 1.0))
            self._try(itertools.islice(further, _PAIRS), _Tried(), part=0.3)
        yield from self._chosen()

    def _telling(self, first: _Tried) -> list[Candidate]:
        """The single edits that make something else of a wrong result and break nothing: halves of what is looked for.

        One that leaves every result as it is may be a half too, but there are hundreds of those.
        """
        ordered = sorted(first.candidates, key=lambda one: -one.score)[:_LOOKED_AT]
        checks = [*self._wrong, *self._passing]
        scores = self._bench.score(self._code, [one.edits for one in ordered], checks, every=True)
        changed = len(self._wrong)
        found = {
            place
            for place, letters in scores
            if "w" in letters[:changed]
            and set(letters[:changed]) <= {"w", "."}
            and set(letters[changed:]) <= {"."}
        }
        return [ordered[place] for place in sorted(found)]

    def _fed(self, further: Further, stage: _Tried) -> Iterator[Candidate]:
        """The further candidates; what gets nearer still becomes a base on the way."""
        looked = 0
        for candidate in further:
            yield candidate
            if len(stage.outcomes) - looked >= 400:
                places = sorted(stage.outcomes)[looked:]
                looked += len(places)
                for place in places:
                    outcomes = stage.outcomes[place]
                    mended = leading(outcomes)
                    if 1 < mended < len(self._failing) and mended > self._best_leading:
                        self._best_leading = mended
                        one = stage.candidates[place]
                        further.add(
                            Base(
                                apply_edits(self._code, list(one.edits)),
                                one,
                                1.0 + mended / len(self._failing),
                            )
                        )

    _best_leading = 0

    def _bases(self, tried: Sequence[tuple[Candidate, str]]) -> list[Base]:
        """The variants that get nearer: of the likeliest, all checks are run, whatever fails."""
        ordered = sorted(tried, key=lambda pair: (-promise(pair[1], self._before), -pair[0].score))[
            :_LOOKED_AT
        ]
        most = time.monotonic() + _BASES_PART * self._budget_s
        candidates: list[Candidate] = []

        def drawn() -> Iterator[tuple[Edit, ...]]:
            for candidate, outcomes in ordered:
                if outcomes[:1] in ("t", "d", "-"):
                    continue
                candidates.append(candidate)
                yield candidate.edits
                if time.monotonic() > most:
                    return

        outcomes = dict(self._bench.score(self._code, drawn(), self._checks, every=True))
        seen = [(candidates[place], letters) for place, letters in outcomes.items()]
        found = bases(self._code, seen, self._before, len(self._failing))
        self._best_leading = max((leading(letters) for _, letters in seen), default=0)
        return found


def _size(check: Check) -> int:
    return len(check.call) or len(repr(check.arguments))
