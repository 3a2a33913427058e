"""The stages of one search, from what is known of the code to patches.

Each has what the one before found out: every single edit, likeliest first; then what only ran out of time, with more of
it; then two and more edits, from variants that got nearer.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence

from healkit.contracts.healing import Attempt, Edit, Patch, apply_edits, difference
from healkit.healing.advisor import Case, Workbench
from healkit.healing.inputs import accepted
from healkit.healing.search.choosing import Plausible, Ranked, ranked
from healkit.healing.search.explaining import explain
from healkit.healing.search.outcomes import late, leading, promise
from healkit.healing.search.ranking import Candidate, Space
from healkit.healing.search.second_order import Base, Further, bases, pairs
from healkit.healing.search.sieve import Sieve, Tried
from healkit.healing.search.subject import Subject, look, parses
from healkit.healing.search.vouching import OVERTAKEN, UNCOMPARED, doubt

#: A likeliest patch that keeps less than this of what seemed right, and mends so few failing checks that it may do so
#: by chance, has so many further candidates looked at, for this part of the budget.
_KEPT_ENOUGH, _FEW, _LOOK_ON, _LOOK_ON_PART = 0.75, 2, 1000, 0.15
#: So many single edits are tried before anything else, as far as time allows.
_FIRST_LEAST = 3000
#: What part of the budget single edits may take while nothing is found, then several, and single ones once more; and
#: looking for bases.
_FIRST_PART, _FURTHER_PART, _AGAIN_PART, _BASES_PART = 0.15, 0.35, 0.2, 0.15
#: The most candidates looked at for bases, and retried with more time.
_LOOKED_AT, _SLOW = 3000, 40
#: Of those how many are given really long, in seconds and as a part of the budget: a right answer may take a second.
_SLOWEST, _SLOWEST_S, _SLOWEST_PART = 4, 5.0, 0.15
#: Of how many single edits pairs are made: of the very likeliest, which costs next to nothing and so comes first, of
#: the likeliest, and of those that change a result; how many of these are gone on from, and how many pairs there are of
#: a kind.
_PAIRED_FIRST, _PAIRED, _PAIRED_TELLING, _TELLING_BASES, _PAIRS = 32, 64, 240, 24, 20_000
#: How likely it is that what another advisor changed is a part of what is right, where it got nearer.
_ANOTHER_ADVISORS = 0.9
#: How many patches are proposed of those that do the same wherever they were tried.
_OF_A_KIND = 2
#: For how many bases it is found out anew where they go wrong.
_WATCHED_BASES = 8


def begin(case: Case, bench: Workbench) -> Search | None:
    """Look at the code as it is; None where there is nothing to search.

    Of a draft that does not parse, what another advisor made of it is searched on, if that does.
    """
    code, made_by = case.entry.code, tuple[str, ...]()
    if not parses(code):
        patches = [attempt.patch for attempt in case.attempts if parses(attempt.patch.code)]
        if not patches:
            return None
        code, made_by = patches[0].code, (patches[0].advisor,)
    subject = look(case, bench, code)
    return None if subject is None else Search(case, bench, subject, made_by)


class Search:
    """One search: what is known of the code, and what was found so far.

    made_by: which advisors changed the code before the search did.
    """

    def __init__(self, case: Case, bench: Workbench, subject: Subject, made_by: tuple[str, ...] = ()) -> None:
        self._case, self._bench, self._subject, self._made_by = case, bench, subject, made_by
        self._code = subject.code
        self._seen: set[int] = set()
        self._paired: set[tuple[Edit, ...]] = set()
        self._budget_s = bench.left_s
        self._sieve = Sieve(bench, subject.code, subject.checks, subject.before, self._budget_s)

    def patches(self) -> Generator[Patch, Attempt | None, None]:
        """What single edits give; else what is left to do."""
        sieve, first = self._sieve, Tried()
        space = iter(self._subject.space(self._seen) or ())
        sieve.fill(space, first, part=_FIRST_PART, least=_FIRST_LEAST)
        order = self._ranked()
        if order and order[0].kept < _KEPT_ENOUGH and len(self._subject.failing) <= _FEW:
            # Even the likeliest breaks what seemed to be right: perhaps a less likely edit does not.
            sieve.fill(itertools.islice(space, _LOOK_ON), first, part=_LOOK_ON_PART, enough=False)
            order = self._ranked()
        while (yield from self._proposed(order)):
            sieve.fill(space, first)
            order = self._ranked()
        if not sieve.passed:
            yield from self._without_success(sieve, space, first)

    def _without_success(
        self, sieve: Sieve, space: Iterator[Candidate], first: Tried
    ) -> Generator[Patch, Attempt | None, None]:
        """What is left to do where no single edit has passed so far."""
        stages: tuple[Callable[[], None], ...] = (
            lambda: self._retry_slow(sieve, first),
            lambda: sieve.fill(self._pairs(first, _PAIRED_FIRST), Tried(), part=_FIRST_PART),
            lambda: self._go_on(sieve, first),
            lambda: sieve.fill(space, first, part=_AGAIN_PART),
            lambda: self._from_pairs(sieve, first),
            lambda: sieve.fill(space, first),
        )
        for stage in stages:
            stage()
            yield from self._proposed(self._ranked())
            if sieve.passed:
                return

    def rest(self) -> Iterator[Patch]:
        """What was found and not yet proposed, when time is up."""
        found, self._sieve.found = self._sieve.found, []
        for one in sorted(found, key=lambda one: -one.candidate.score):
            yield self._patch(one, one.candidate.score, doubt=UNCOMPARED)

    def _proposed(self, order: Sequence[Ranked]) -> Generator[Patch, Attempt | None, bool]:
        """Those patches; returns whether to look for more of the same.

        The loop sends what became of a patch. Where validation, which is stricter, let none of them pass, there is
        reason to go on; else the likeliest has been found, because the search came from there. What is less likely than
        one that is doubted is doubted too. More than two that do the same are no choice.
        """
        refused, doubted, stand = 0, False, Counter[tuple[str, str]]()
        for one in order:
            self._sieve.found.remove(one.patch)
            if any(one.does) and stand[one.does] >= _OF_A_KIND:
                continue
            edits = len(self._made_by) + len(one.patch.candidate.made_by)
            why = doubt(self._code, one, edits, len(self._subject.failing)) or (OVERTAKEN if doubted else "")
            attempt = yield self._patch(one.patch, one.rank, doubt=why)
            stands = attempt is None or attempt.verdict != "not_cured"
            doubted = doubted or (stands and bool(why))
            stand[one.does] += stands
            refused += not stands
        return bool(order) and refused == len(order)

    def _ranked(self) -> list[Ranked]:
        accepts = functools.partial(accepted, self._case.entry)
        return ranked(self._bench, self._subject, self._sieve.found, accepts)

    def _patch(self, one: Plausible, rank: float, doubt: str) -> Patch:
        # Where it is known what is right on the failing input, a guard that gives it is no guard only.
        demanded = any(check.known for check in self._subject.failing)
        return Patch(
            code=one.code,
            advisor="search",
            author="search",
            reason=explain(self._case.entry.code, one.code, self._made_by + one.candidate.made_by),
            rank=rank,
            guard=one.candidate.guard and not demanded,
            doubt=doubt,
        )

    def _retry_slow(self, sieve: Sieve, first: Tried) -> None:
        """Once more, with more time, what failed on time alone.

        What mended all checks but one on which it did not end is given really long at once, what mended any afterwards.
        """
        most_s = min(_SLOWEST_S, self._budget_s * _SLOWEST_PART)
        others = max(1, len(self._subject.failing) - 1)
        outcomes = first.with_outcomes()
        nearest = late(outcomes, mended=others)[:_SLOWEST]
        sieve.fill(nearest, Tried(), part=0.3, limit_s=most_s)
        if sieve.passed:
            return
        slow, again = Tried(), late(outcomes)[len(nearest) :]  # the nearest come first there too
        sieve.fill(again[:_SLOW], slow, part=0.2, slow=True)
        if not sieve.passed:
            sieve.fill(late(slow.with_outcomes(), mended=1)[:_SLOWEST], Tried(), part=0.3, limit_s=most_s)

    def _go_on(self, sieve: Sieve, first: Tried) -> None:
        """From variants that got nearer to two edits and more."""
        self._watched = 0
        further = Further(self._code, self._space_of)
        for base in self._bases(first.with_outcomes()):
            further.add(base)
        stage = Tried()
        sieve.fill(self._fed(further, stage), stage, part=_FURTHER_PART)

    def _space_of(self, code: str) -> Space | None:
        """The single edits of a base; where the first ones go wrong is found out anew."""
        self._watched += 1
        watched = self._watched <= _WATCHED_BASES
        return self._subject.space_of(self._bench, code, self._seen, watched=watched)

    def _from_pairs(self, sieve: Sieve, first: Tried) -> None:
        """Pairs of the likeliest edits, then of those that change a wrong result; then any edit beside one of these.

        The other half may show only with it.
        """
        sieve.fill(self._pairs(first, _PAIRED), Tried(), part=0.25)
        if sieve.passed or not self._subject.wrong:
            return
        halves = self._telling(first)
        sieve.fill(itertools.islice(pairs(halves, _PAIRED_TELLING), _PAIRS), Tried(), part=0.3)
        if not sieve.passed:
            further = Further(self._code, self._space_of)
            for half in halves[:_TELLING_BASES]:
                further.add(Base(apply_edits(self._code, list(half.edits)), half, 1.0))
            sieve.fill(itertools.islice(further, _PAIRS), Tried(), part=0.3)

    def _pairs(self, first: Tried, most: int) -> Iterator[Candidate]:
        """Pairs of the likeliest so many single edits, but for those that came before."""
        for pair in pairs(sorted(first.candidates, key=lambda one: -one.score), most):
            if pair.edits not in self._paired:
                self._paired.add(pair.edits)
                yield pair

    def _telling(self, first: Tried) -> list[Candidate]:
        """The single edits that make something else of a wrong result and break nothing: halves of what is looked for.

        One that leaves every result as it is may be a half too, but there are hundreds of those.
        """
        ordered = sorted(first.candidates, key=lambda one: -one.score)[:_LOOKED_AT]
        checks = [*self._subject.wrong, *self._subject.passing]
        scores = self._bench.score(self._code, [one.edits for one in ordered], checks, every=True)
        changed = len(self._subject.wrong)
        found = {
            place
            for place, letters in scores
            if "w" in letters[:changed]
            and set(letters[:changed]) <= {"w", "."}
            and set(letters[changed:]) <= {"."}
        }
        return [ordered[place] for place in sorted(found)]

    def _fed(self, further: Further, stage: Tried) -> Iterator[Candidate]:
        """The further candidates; what gets nearer still becomes a base on the way."""
        looked, failing = 0, len(self._subject.failing)
        for candidate in further:
            yield candidate
            if len(stage.outcomes) - looked >= 400:
                places = sorted(stage.outcomes)[looked:]
                looked += len(places)
                for place in places:
                    mended = leading(stage.outcomes[place])
                    if 1 < mended < failing and mended > self._best_leading:
                        self._best_leading = mended
                        one = stage.candidates[place]
                        code = apply_edits(self._code, list(one.edits))
                        further.add(Base(code, one, 1.0 + mended / failing))

    _best_leading = 0

    def _bases(self, tried: Sequence[tuple[Candidate, str]]) -> list[Base]:
        """The variants that get nearer: of the likeliest, all checks are run, whatever fails."""
        before = self._subject.before
        ordered = sorted(tried, key=lambda pair: (-promise(pair[1], before), -pair[0].score))
        likely = (one for one, letters in ordered[:_LOOKED_AT] if letters[:1] not in ("t", "d", "-"))
        most = time.monotonic() + _BASES_PART * self._budget_s
        candidates: list[Candidate] = []

        def drawn() -> Iterator[tuple[Edit, ...]]:
            for candidate in itertools.chain(self._others(), likely):
                candidates.append(candidate)
                yield candidate.edits
                if time.monotonic() > most:
                    return

        outcomes = dict(self._bench.score(self._code, drawn(), self._subject.checks, every=True))
        seen = [(candidates[place], letters) for place, letters in outcomes.items()]
        found = bases(self._code, seen, before, len(self._subject.failing))
        self._best_leading = max((leading(letters) for _, letters in seen), default=0)
        return found

    def _others(self) -> Iterator[Candidate]:
        """What other advisors proposed and is not enough: the first of two mistakes may be one that they know."""
        for attempt in self._case.attempts:
            if (
                attempt.verdict == "not_cured"
                and attempt.patch.code != self._code
                and parses(attempt.patch.code)
            ):
                edit = difference(self._code, attempt.patch.code)
                yield Candidate((edit,), _ANOTHER_ADVISORS, _ANOTHER_ADVISORS, (attempt.patch.advisor,))
