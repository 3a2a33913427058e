"""Search advisor: tries thousands of small edits, in stages.

Each stage uses the results of the one before. First come all single edits, likeliest first. Then come candidates that
only ran out of time, with more time. Last come two and more edits, from variants that made progress. The search ends as
soon as nothing is left to try, because no edit rule restores deleted code.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import itertools
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Literal

from healkit.core.contracts.patches import Check, Edit, apply_edits, difference
from healkit.errors import BudgetSpent
from healkit.parts.heal.advisor import Case, Workbench
from healkit.parts.heal.advisors.search.edit_space import (
    Baseline,
    BaseVariant,
    Candidate,
    EditSpace,
    HigherOrderSpace,
    Suspicion,
    bases,
    normalized_code,
    observe_baseline,
    pairs,
    parses,
    passed_first,
    progress,
    timed_out,
)
from healkit.parts.heal.advisors.search.patch_ranking import (
    OTHERS_DIFFER,
    OVERTAKEN,
    PARTIAL,
    PlausiblePatch,
    RankedPatch,
    rank_patches,
    reason_for_doubt,
)
from healkit.parts.heal.inputs import accepted
from healkit.parts.heal.records import Attempt, Patch
from healkit.parts.heal.verdicts import UNCOMPARED, only_hides
from healkit.parts.trials.messages import NOT_ON_RECORD, NOT_RUN, PASSED

_Author = Literal["rule", "search"]


class SearchAdvisor:
    """Advisor (`healing.advisor.Advisor`) without a model: tries edits made by operators."""

    name = "search"
    author: Literal["search"] = "search"

    def propose(self, case: Case, bench: Workbench) -> Generator[Patch, Attempt | None, None]:
        """Yield patches that pass every check, likeliest first; none for SQL."""
        entry = case.entry
        if entry.type != "python":
            return
        search = None
        try:
            search = start_search(case, bench)
            if search is not None:
                yield from search.patches()
        except BudgetSpent:
            if search is not None:
                yield from search.rest()


# Parts of the budget are shares of the search's whole time.
#: The top patch is suspicious if it keeps a smaller share of the tool's results than this, and may pass the few failing
#: checks by chance. Then more candidates are tried, in this part of the budget.
_KEPT_SHARE_MIN, _CHANCE_CHECKS_MAX = 0.75, 2
_MORE_CANDIDATES, _MORE_CANDIDATES_PART = 1000, 0.15
#: Single edits that are tried before anything else, and their part of the budget; the first pairs have the same part.
_SINGLE_EDITS_MIN, _SINGLE_EDITS_PART = 3000, 0.15
#: Parts of the budget for finding bases, for several edits from them, and for single edits after that.
_BASES_PART, _SEVERAL_EDITS_PART, _SINGLE_EDITS_AGAIN_PART = 0.15, 0.35, 0.2
#: The most candidates of a stage that are considered as bases, or as halves of a fix.
_CONSIDERED_MAX = 3000
#: The most candidates retried with more time, and the most of those with a really long time. Then the limit of the
#: latter, in seconds and as a part of the budget. A right patch may take a second.
_RETRIED_MAX, _RETRIED_LONG_MAX = 40, 4
_LONG_TIME_S, _LONG_TIME_PART = 5.0, 0.15
#: How many of the likeliest single edits are paired: at first, when few pairs cost little, and later.
_PAIRED_FIRST, _PAIRED_LATER = 32, 64
#: Single edits that change a wrong result: how many are paired, and how many are bases.
_RESULT_CHANGING_PAIRED, _RESULT_CHANGING_BASES = 240, 24
#: The most pairs of a stage.
_PAIRS_MAX = 20_000
#: Prior that another advisor's patch is a part of the right one, if it made progress.
_OTHER_ADVISOR_PRIOR = 0.9
#: The most patches with the same behaviour that are proposed.
_SAME_BEHAVIOUR_MAX = 2
#: The most single edits that are proposed although a call of theirs is not on record: if calls may be made, and if not.
#: Then the outcomes of their checks.
_UNDECIDED_MAX, _UNDECIDED_TOLD, _OPEN = 12, 5, frozenset({PASSED, NOT_ON_RECORD, NOT_RUN})
#: The most single edits that another advisor's patch is compared with, their time in seconds and as a part of the rest.
_RIVALS_MAX, _RIVALS_S, _RIVALS_PART = 1200, 0.8, 0.1
#: Prior of a rule's patch, which what was raised speaks for too.
_RULE_PRIOR = 2.0
#: Least share of the evidence for what rivals do that speaks against a patch.
_CREDIBLE = 0.08
#: The most bases for which the fault is localized anew.
_LOCALIZED_BASES_MAX = 8


def start_search(
    case: Case, bench: Workbench, advisor: str = "search", author: _Author = "search"
) -> Search | None:
    """Watch the unpatched code and return its search; None if there is nothing to search.

    advisor, author: Those of its patches.

    If a draft does not parse, the search starts from another advisor's patch that does.
    """
    code, made_by = case.entry.code, tuple[str, ...]()
    if not parses(code):
        patches = [attempt.patch for attempt in case.attempts if parses(attempt.patch.code)]
        if not patches:
            return None
        code, made_by = patches[0].code, (patches[0].advisor,)
    baseline = observe_baseline(case, bench, code)
    return None if baseline is None else Search(case, bench, baseline, made_by, advisor, author)


def doubt_by_rivals(case: Case, patch: Patch, bench: Workbench) -> str:
    """Return why another advisor's patch is doubted, by the rules for the search's own; empty if it is not.

    It is compared with the single edits that pass too. Raises `BudgetSpent`.
    """
    if case.entry.type != "python" or not (parses(case.entry.code) and parses(patch.code)):
        return ""
    search = start_search(case, bench)
    return "" if search is None else search.doubt(patch)


class Search:
    """State of a search: the baseline, and the patches found so far.

    made_by: Names of advisors that changed the code before.
    advisor, author: Those of its patches.
    """

    def __init__(
        self,
        case: Case,
        bench: Workbench,
        baseline: Baseline,
        made_by: tuple[str, ...] = (),
        advisor: str = "search",
        author: _Author = "search",
    ) -> None:
        self._advisor, self._author = advisor, author
        self._case, self._bench, self._baseline, self._made_by = case, bench, baseline, made_by
        self._code = baseline.code
        self._seen: set[int] = set()
        self._paired: set[tuple[Edit, ...]] = set()
        self._budget_s = bench.left_s
        self._evaluator = CandidateEvaluator(
            bench, baseline.code, baseline.checks, baseline.before, self._budget_s
        )

    @property
    def suspicion(self) -> Suspicion:
        """Suspicion of the code's lines."""
        return self._baseline.suspicion

    def of(self, candidates: Sequence[Candidate]) -> Generator[Patch, Attempt | None, None]:
        """Try all of these candidates and no others; propose those that pass."""
        self._evaluator.evaluate(candidates, Evaluated(), enough=False)
        yield from self._proposed(self._ranked())

    def doubt(self, patch: Patch) -> str:
        """Return why a patch is doubted, compared with the single edits that pass too; empty if it is not."""
        code, baseline, bench = self._code, self._baseline, self._bench
        most_s = min(_RIVALS_S, _RIVALS_PART * bench.left_s)
        evaluator = CandidateEvaluator(bench, code, baseline.checks, baseline.before, most_s)
        space = itertools.islice(baseline.space(self._seen) or (), _RIVALS_MAX)
        evaluator.evaluate(space, Evaluated(), enough=False)
        edit = (difference(code, patch.code),)
        prior = _RULE_PRIOR if patch.author == "rule" else 1.0
        plausible = PlausiblePatch(patch.code, Candidate(edit, prior, prior, (patch.advisor,), patch.guard))
        same = normalized_code(patch.code)
        alternatives = [
            alternative for alternative in evaluator.found if normalized_code(alternative.code) != same
        ]
        patches = [
            plausible,
            *(alternative for alternative in alternatives if not only_hides(self._case, alternative.code)),
        ]
        order = rank_patches(bench, baseline, patches, functools.partial(accepted, self._case.entry))
        ranked_patch = next(ranked_patch for ranked_patch in order if ranked_patch.patch is plausible)
        rivals = {rival.does for rival in order if rival.share > _CREDIBLE and any(rival.does)}
        ranked_patch = dataclasses.replace(ranked_patch, behaviours=len({ranked_patch.does} | rivals))
        if baseline.evidence == 1 and ranked_patch.behaviours > 1:
            return OTHERS_DIFFER
        # Of an edit that some knowledge made, one check that passes is not met by chance.
        return reason_for_doubt(
            code, ranked_patch, 1, max(2, baseline.evidence), loudly=baseline.fails_loudly
        )

    def patches(self) -> Generator[Patch, Attempt | None, None]:
        """Propose patches by single edits; if there are none, by the later stages."""
        evaluator, first = self._evaluator, Evaluated()
        space = iter(self._baseline.space(self._seen) or ())
        evaluator.evaluate(space, first, part=_SINGLE_EDITS_PART, least=_SINGLE_EDITS_MIN)
        order = self._ranked()
        if order and order[0].kept < _KEPT_SHARE_MIN and len(self._baseline.failing) <= _CHANCE_CHECKS_MAX:
            # Even the top patch breaks results that seemed right: a less likely edit may not.
            evaluator.evaluate(
                itertools.islice(space, _MORE_CANDIDATES), first, part=_MORE_CANDIDATES_PART, enough=False
            )
            order = self._ranked()
        more = yield from self._proposed(order)
        if more or not evaluator.passed:  # what may be right comes before what only hides the error
            yield from self._undecided(first)
        while more:
            evaluator.evaluate(space, first, part=1.0 if self._refused else _SINGLE_EDITS_PART)
            order = self._ranked()
            more = yield from self._proposed(order)
        if not evaluator.passed:
            yield from self._without_success(evaluator, space, first)
        if not evaluator.passed:
            yield from self._partial()

    def _undecided(self, tried: Evaluated) -> Generator[Patch, Attempt | None, None]:
        """Propose the likeliest single edits that only lack a recorded call, which may be made or allowed."""
        lacking = [
            tried_candidate
            for tried_candidate, letters in tried.with_outcomes()
            if NOT_ON_RECORD in letters and set(letters) <= _OPEN
        ]
        most = _UNDECIDED_MAX if self._bench.may_call else _UNDECIDED_TOLD
        for candidate in sorted(lacking, key=lambda one: -one.score)[:most]:
            patch = PlausiblePatch(apply_edits(self._code, list(candidate.edits)), candidate)
            attempt = yield self._patch(patch, candidate.score, doubt="")
            if attempt is not None and attempt.plausible:
                self._evaluator.passed = True
                return

    def _without_success(
        self, evaluator: CandidateEvaluator, space: Iterator[Candidate], first: Evaluated
    ) -> Generator[Patch, Attempt | None, None]:
        """Run the later stages, if no single edit has passed so far."""
        stages: tuple[Callable[[], None], ...] = (
            lambda: self._retry_slow(evaluator, first),
            lambda: evaluator.evaluate(
                self._pairs(first, _PAIRED_FIRST), Evaluated(), part=_SINGLE_EDITS_PART
            ),
            lambda: self._search_from_bases(evaluator, first),
            lambda: evaluator.evaluate(space, first, part=_SINGLE_EDITS_AGAIN_PART),
            lambda: self._from_pairs(evaluator, first),
            lambda: evaluator.evaluate(space, first),
        )
        for stage in stages:
            stage()
            yield from self._proposed(self._ranked())
            if evaluator.passed:
                return

    def rest(self) -> Iterator[Patch]:
        """Propose patches that were found but not yet proposed when time is up."""
        patches, self._evaluator.found = self._evaluator.found, []
        for patch in sorted(patches, key=lambda one: -one.candidate.score):
            yield self._patch(patch, patch.candidate.score, doubt=UNCOMPARED)
        if not patches:
            yield from self._partial()

    def _partial(self) -> Iterator[Patch]:
        """Propose the variant that passes most failing checks and breaks none: not a cure, but a start."""
        if self._nearest is not None:
            nearest = PlausiblePatch(self._nearest.code, self._nearest.candidate)
            yield self._patch(nearest, 0.0, doubt=PARTIAL)

    def _proposed(self, order: Sequence[RankedPatch]) -> Generator[Patch, Attempt | None, bool]:
        """Propose those patches; return whether to search for more.

        The loop sends back the result of each patch. If validation, which is stricter, refused all of them, the search
        continues. It also continues for a while if all of them only hide the error. Otherwise the likeliest patch is
        found. A patch that is ranked below a doubted one is doubted too. At most two patches of the same behaviour are
        proposed.
        """
        self._refused = True
        refused, doubted, stand = 0, False, Counter[tuple[str, str]]()
        for ranked in order:
            self._evaluator.found.remove(ranked.patch)
            if any(ranked.does) and stand[ranked.does] >= _SAME_BEHAVIOUR_MAX:
                continue
            edits = len(self._made_by) + len(ranked.patch.candidate.made_by)
            fixed, loudly = self._baseline.evidence, self._baseline.fails_loudly
            why = reason_for_doubt(
                self._code, ranked, edits, fixed, loudly=loudly, alone=not self._baseline.passing
            )
            why = why or ("" if self._evaluator.compared else UNCOMPARED) or (OVERTAKEN if doubted else "")
            attempt = yield self._patch(ranked.patch, ranked.rank, doubt=why)
            stands = attempt is None or attempt.verdict in ("cured", "unproven")
            self._refused = self._refused and attempt is not None and not attempt.plausible
            doubted = doubted or (stands and bool(why))
            stand[ranked.does] += stands
            refused += not stands
        return bool(order) and refused == len(order)

    def _ranked(self) -> list[RankedPatch]:
        accepts = functools.partial(accepted, self._case.entry)
        return rank_patches(self._bench, self._baseline, self._evaluator.found, accepts)

    def _patch(self, one: PlausiblePatch, rank: float, doubt: str) -> Patch:
        # With a known result for the failing input, a guard that returns it is more than a guard.
        demanded = any(check.known for check in self._baseline.failing)
        return Patch(
            code=one.code,
            advisor=self._advisor,
            author=self._author,
            reason=edits_in_words(self._case.entry.code, one.code, self._made_by + one.candidate.made_by),
            rank=rank,
            guard=one.candidate.guard and not demanded,
            doubt=doubt,
        )

    def _retry_slow(self, evaluator: CandidateEvaluator, first: Evaluated) -> None:
        """Retry candidates that only ran out of time, with more time.

        First those that passed all checks but one get a really long time, afterwards those that passed any.
        """
        most_s = min(_LONG_TIME_S, self._budget_s * _LONG_TIME_PART)
        least_passed = max(1, len(self._baseline.failing) - 1)
        outcomes = first.with_outcomes()
        nearest = timed_out(outcomes, passed=least_passed)[:_RETRIED_LONG_MAX]
        evaluator.evaluate(nearest, Evaluated(), part=0.3, limit_s=most_s)
        if evaluator.passed:
            return
        slow, again = Evaluated(), timed_out(outcomes)[len(nearest) :]  # nearest first
        evaluator.evaluate(again[:_RETRIED_MAX], slow, part=0.2, slow=True)
        if not evaluator.passed:
            evaluator.evaluate(
                timed_out(slow.with_outcomes(), passed=1)[:_RETRIED_LONG_MAX],
                Evaluated(),
                part=0.3,
                limit_s=most_s,
            )

    def _search_from_bases(self, evaluator: CandidateEvaluator, first: Evaluated) -> None:
        """Search from variants that made progress: two edits and more."""
        self._watched = 0
        higher_order = HigherOrderSpace(self._code, self._space_of)
        for base in self._bases(first.with_outcomes()):
            higher_order.add(base)
        stage = Evaluated()
        evaluator.evaluate(self._with_new_bases(higher_order, stage), stage, part=_SEVERAL_EDITS_PART)

    def _space_of(self, code: str) -> EditSpace | None:
        """Return the single edits of a base; for the first bases the fault is localized again."""
        self._watched += 1
        watched = self._watched <= _LOCALIZED_BASES_MAX
        return self._baseline.space_of(self._bench, code, self._seen, watched=watched)

    def _from_pairs(self, evaluator: CandidateEvaluator, first: Evaluated) -> None:
        """Try pairs of the likeliest edits, then of those that change a wrong result, then these with any edit.

        The second half of a fix may have a visible effect only with the first.
        """
        evaluator.evaluate(self._pairs(first, _PAIRED_LATER), Evaluated(), part=0.25)
        if evaluator.passed or not self._baseline.wrong_results:
            return
        halves = self._result_changing(first)
        evaluator.evaluate(
            itertools.islice(pairs(halves, _RESULT_CHANGING_PAIRED), _PAIRS_MAX), Evaluated(), part=0.3
        )
        if not evaluator.passed:
            higher_order = HigherOrderSpace(self._code, self._space_of)
            for half in halves[:_RESULT_CHANGING_BASES]:
                higher_order.add(BaseVariant(apply_edits(self._code, list(half.edits)), half, 1.0))
            evaluator.evaluate(itertools.islice(higher_order, _PAIRS_MAX), Evaluated(), part=0.3)

    def _pairs(self, first: Evaluated, most: int) -> Iterator[Candidate]:
        """Yield pairs of the likeliest single edits, except pairs that were tried before."""
        for pair in pairs(sorted(first.candidates, key=lambda one: -one.score), most):
            if pair.edits not in self._paired:
                self._paired.add(pair.edits)
                yield pair

    def _result_changing(self, first: Evaluated) -> list[Candidate]:
        """Return single edits that change a wrong result and break nothing: possible halves of a fix.

        An edit without a visible effect may be a half too, but there are hundreds of those.
        """
        ordered = sorted(first.candidates, key=lambda one: -one.score)[:_CONSIDERED_MAX]
        checks = [*self._baseline.wrong_results, *self._baseline.passing]
        scores = self._bench.score(self._code, [candidate.edits for candidate in ordered], checks, every=True)
        changed = len(self._baseline.wrong_results)
        places = {
            place
            for place, letters in scores
            if "w" in letters[:changed]
            and set(letters[:changed]) <= {"w", "."}
            and set(letters[changed:]) <= {"."}
        }
        return [ordered[place] for place in sorted(places)]

    def _with_new_bases(self, higher_order: HigherOrderSpace, stage: Evaluated) -> Iterator[Candidate]:
        """Yield the candidates; those that make more progress become bases on the way."""
        looked, failing = 0, len(self._baseline.failing)
        for candidate in higher_order:
            yield candidate
            if len(stage.outcomes) - looked >= 400:
                places = sorted(stage.outcomes)[looked:]
                looked += len(places)
                for place in places:
                    passed = passed_first(stage.outcomes[place])
                    if 1 < passed < failing and passed > self._best_leading:
                        self._best_leading = passed
                        promising = stage.candidates[place]
                        code = apply_edits(self._code, list(promising.edits))
                        higher_order.add(BaseVariant(code, promising, 1.0 + passed / failing))

    _best_leading = 0
    #: Whether validation refused all that was proposed last.
    _refused = True
    _nearest: BaseVariant | None = None

    def _bases(self, tried: Sequence[tuple[Candidate, str]]) -> list[BaseVariant]:
        """Return the variants that make progress: runs all checks on the most promising candidates."""
        before = self._baseline.before
        ordered = sorted(tried, key=lambda pair: (-progress(pair[1], before), -pair[0].score))
        likely = (
            likely_candidate
            for likely_candidate, letters in ordered[:_CONSIDERED_MAX]
            if letters[:1] not in ("t", "d", "-")
        )
        most = time.monotonic() + _BASES_PART * self._budget_s
        candidates: list[Candidate] = []

        def drawn() -> Iterator[tuple[Edit, ...]]:
            for candidate in itertools.chain(self._others(), likely):
                candidates.append(candidate)
                yield candidate.edits
                if time.monotonic() > most:
                    return

        outcomes = dict(self._bench.score(self._code, drawn(), self._baseline.checks, every=True))
        scored = [(candidates[place], letters) for place, letters in outcomes.items()]
        variants = bases(self._code, scored, before, len(self._baseline.failing))
        self._nearest = max(
            (base for base in variants if base.gain > 1), key=lambda base: base.gain, default=None
        )
        self._best_leading = max((passed_first(letters) for _, letters in scored), default=0)
        return variants

    def _others(self) -> Iterator[Candidate]:
        """Yield other advisors' insufficient patches: they may fix the first of two mistakes."""
        for attempt in self._case.attempts:
            if not attempt.plausible and attempt.patch.code != self._code and parses(attempt.patch.code):
                edit = difference(self._code, attempt.patch.code)
                yield Candidate((edit,), _OTHER_ADVISOR_PRIOR, _OTHER_ADVISOR_PRIOR, (attempt.patch.advisor,))


# Candidates of a stage are evaluated until the stop criterion is reached.

#: After the first candidate that passes, the search continues for a while, because a better one may follow. It ends
#: at the first of these events, but not within `_MORE_MIN_S` seconds:
#: - it has tried as many further candidates as were tried until then, and at least `_MORE_MIN`;
#: - it has taken as long as until then, plus `_MORE_S` seconds;
#: - it has taken `_MORE_MAX_S` seconds, or `_MORE_PART` of the budget;
#: - after `_MORE_LIKELY_MIN` tries, a candidate is less likely than `_LIKELY_SHARE_MIN` times the best one that passed.
#:   (For 159 tools the first proposal was right. It was always at least 0.6 times as likely as any other that passed.)
#: If candidates are so slow that fewer than `_MORE_MIN` were tried until then, it continues to `_COMPARED_PART` of the
#: budget. If they are still too few, nothing is claimed about the patches that passed.
_MORE_MIN, _MORE_MIN_S = 400, 0.15
_MORE_S, _MORE_MAX_S, _MORE_PART = 1.0, 3.0, 0.15
_LIKELY_SHARE_MIN, _MORE_LIKELY_MIN = 0.2, 200
_COMPARED_PART = 0.4
#: A stage that has tried too few candidates may take its part of the budget this many times.
_LEAST_TIMES = 4.0
#: How long to wait for candidates drawn before the stop; a few of them may take as long as all others.
_OVERDUE_S = 0.5


@dataclasses.dataclass(frozen=True)
class _Success:
    """Candidate that passed every check: when, after how many candidates, and with which score."""

    at: float
    after: int
    score: float


class StopCriterion:
    """Decision when a stage of the search ends; its time starts when it is created.

    part: The part of the budget that the stage may use.
    least: The number of candidates to try even if they are slow, in up to four times that part.
    after_success: Whether a success may end the stage.
    clock: Returns the time in seconds.
    """

    def __init__(
        self,
        budget_s: float,
        part: float,
        least: int = 0,
        *,
        after_success: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget_s, self._part_s, self._least = budget_s, part * budget_s, least
        self._after_success = after_success
        self._clock = clock
        self._began = clock()
        self._ended: float | None = None
        self._passed: list[_Success] = []

    def record_success(self, tried: int, score: float) -> None:
        """Record that a candidate with that score passed every check after so many tries."""
        self._passed.append(_Success(self._clock(), tried, score))

    def reached(self, tried: int, score: float) -> bool:
        """Return whether to stop after that many candidates, the last of which has that score.

        After a success, the stage's part of the budget does not end it: the comparison has its own time.
        """
        if self._after_success and self._passed:
            ends = self._enough_after_success(tried, score)
        else:
            spent_s = self._clock() - self._began
            ends = spent_s > self._part_s and (tried >= self._least or spent_s > _LEAST_TIMES * self._part_s)
        if ends:
            self._ended = self._clock()
        return self._ended is not None

    def compared(self, tried: int, score: float) -> bool:
        """Return whether that many candidates are enough to compare the first passing one with, whatever the time."""
        more = tried - self._passed[0].after
        return more >= _MORE_MIN or (self._unlikely(score) and more > _MORE_LIKELY_MIN)

    @property
    def succeeded(self) -> bool:
        """True if a candidate has passed every check."""
        return bool(self._passed)

    @property
    def overdue(self) -> bool:
        """True if it is not worth waiting for candidates that are still running."""
        return self._ended is not None and self._clock() - self._ended > _OVERDUE_S

    def _enough_after_success(self, tried: int, score: float) -> bool:
        """Return whether enough was tried after the first candidate that passed."""
        first = self._passed[0]
        since, more = self._clock() - first.at, tried - first.after
        if since < _MORE_MIN_S:
            return False
        if not self.compared(tried, score):
            return since > self._budget_s * _COMPARED_PART
        most_s = min(first.at - self._began + _MORE_S, _MORE_MAX_S, self._budget_s * _MORE_PART)
        return since > max(most_s, _MORE_MIN_S) or more >= first.after or self._unlikely(score)

    def _unlikely(self, score: float) -> bool:
        """Return whether a score is far below that of the best candidate that passed."""
        return score < _LIKELY_SHARE_MIN * max(success.score for success in self._passed)


@dataclasses.dataclass
class Evaluated:
    """Candidates of one stage and their outcomes, by position."""

    candidates: list[Candidate] = dataclasses.field(default_factory=list)
    outcomes: dict[int, str] = dataclasses.field(default_factory=dict)

    def with_outcomes(self) -> list[tuple[Candidate, str]]:
        """Return the candidates that ran, with their outcomes."""
        return [(self.candidates[place], outcomes) for place, outcomes in self.outcomes.items()]


class CandidateEvaluator:
    """Runner of candidates for a code; `found` has those that passed all checks and were not proposed yet.

    before: The outcomes of the unpatched code, by letter (`Workbench.score`). Checks on which it does not end run last.
        Most variants do not end there either, which costs the whole time limit, and many of them fail a quick check.
    """

    def __init__(
        self, bench: Workbench, code: str, checks: Sequence[Check], before: str, budget_s: float
    ) -> None:
        self._bench, self._code, self._budget_s = bench, code, budget_s
        self._turns = sorted(range(len(checks)), key=lambda place: before[place] in "td")
        self._checks = [checks[place] for place in self._turns]
        self._same: set[str] = set()
        self.found: list[PlausiblePatch] = []
        #: Whether any candidate has ever passed.
        self.passed = False
        #: False if time ended the last stage with a success before enough other candidates were tried.
        self.compared = True

    def evaluate(
        self,
        source: Iterable[Candidate],
        tried: Evaluated,
        *,
        part: float = 1.0,
        least: int = 0,
        slow: bool = False,
        limit_s: float | None = None,
        enough: bool = True,
    ) -> None:
        """Try candidates until the source ends or the stop criterion is reached.

        part, least: As in `StopCriterion`.
        enough: Whether a success may end it; if not, the complete source is compared.
        slow, limit_s: As in `Workbench.score`; with them, wait for every candidate, because they are few.
        """
        offset = len(tried.candidates)
        criterion = StopCriterion(self._budget_s, part, least, after_success=enough)
        ended = False

        def drawn() -> Iterator[tuple[Edit, ...]]:
            nonlocal ended
            for candidate in source:
                tried.candidates.append(candidate)
                yield candidate.edits
                if criterion.reached(len(tried.candidates) - offset, candidate.score):
                    return
            ended = True

        for position, outcomes in self._bench.score(
            self._code, drawn(), self._checks, slow=slow, limit_s=limit_s
        ):
            tried.outcomes[offset + position] = self._in_place(outcomes)
            if outcomes == "." * len(self._checks):
                candidate = tried.candidates[offset + position]
                self._keep(candidate)
                criterion.record_success(len(tried.candidates) - offset, candidate.score)
            if criterion.overdue and not (slow or limit_s):
                break
        if not enough:
            self.compared = self.compared and ended
        elif criterion.succeeded:
            last = tried.candidates[-1].score
            self.compared = ended or criterion.compared(len(tried.candidates) - offset, last)

    def _in_place(self, outcomes: str) -> str:
        """Return the letters in the order in which the checks were given."""
        letters = dict(zip(self._turns, outcomes, strict=True))
        return "".join(letters[place] for place in range(len(outcomes)))

    def _keep(self, candidate: Candidate) -> None:
        code = apply_edits(self._code, list(candidate.edits))
        if (same := normalized_code(code)) not in self._same:
            self._same.add(same)
            self.found.append(PlausiblePatch(code, candidate))
            self.passed = True


# The reason of a patch: the lines that it changes.

#: The most characters of a line, and the most places, in the reason of a patch.
_LINE_MAX_CHARS, _PLACES_MAX = 70, 3


def edits_in_words(before: str, after: str, made_by: Sequence[str]) -> str:
    """Return which lines change, and by which kinds of edits, in one sentence."""
    old, new = before.splitlines(), after.splitlines()
    places = []
    for kind, low, high, other_low, other_high in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            continue
        out, come = _shown(old[low:high]), _shown(new[other_low:other_high])
        if kind == "insert":
            places.append(f"adds {come} {f'after line {low}' if low else 'at the top'}")
        elif kind == "delete":
            places.append(f"removes {out} in line {low + 1}")
        else:
            places.append(f"line {low + 1}: {out} becomes {come}")
    more = f"; and {len(places) - _PLACES_MAX} more" if len(places) > _PLACES_MAX else ""
    text = "; ".join(places[:_PLACES_MAX]) or "only the layout changes"
    return f"{text[0].upper()}{text[1:]}{more} ({', then '.join(made_by)})."


def _shown(lines: Sequence[str]) -> str:
    """Write lines on one line of Python: `if not games: return 0`."""
    text = "; ".join(line.strip() for line in lines if line.strip()).replace(":; ", ": ")
    return f"`{text if len(text) <= _LINE_MAX_CHARS else text[: _LINE_MAX_CHARS - 1] + '…'}`"
