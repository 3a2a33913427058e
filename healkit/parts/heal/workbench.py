"""Workbench: a sync face of batches, with a budget.

An advisor works in its own thread and knows no event loop. `Bench` gives its work to healkit's loop, draws candidates
in the advisor's thread (they may depend on earlier outcomes), and raises `BudgetSpent` when time is up.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from itertools import chain, islice
from typing import Any, TypeVar

from healkit.core.contracts.patches import Check, CheckResult, Edit, Observed
from healkit.core.contracts.tools import EntryRef
from healkit.core.runtime import background
from healkit.errors import BudgetSpent
from healkit.parts.heal.checks import SLOW_TIMES, CheckLimits
from healkit.parts.trials.messages import Candidate
from healkit.parts.trials.trials import Fixture, Held, Trials
from healkit.parts.trials.variants import Draw, Scores

T = TypeVar("T")
#: Runs the code with each check, with a limit for each.
_Run = Callable[[str, Sequence[Check], Sequence[float]], Coroutine[Any, Any, list[CheckResult]]]

#: Time to measure how long a check takes, in seconds and as a part of the budget.
_TIMING_FIRST_S, _TIMING_S, _TIMING_PART = 0.15, 5.0, 1 / 30
_TIMING_LEAST_S = 0.8
#: Longest time to observe a check, and one that is known to hang.
_WATCH_S, _WATCH_HANGING_S = 1.0, 0.4
#: Longest wait for the end of a cancelled task.
_SETTLE_S = 5.0
#: Interval at which Stop and the clock are checked.
_TICK_S = 0.05


@dataclasses.dataclass
class _ThinkTime:
    """Time spent waiting for a person so far; benches side by side share one."""

    total_s: float = 0.0


@dataclasses.dataclass(frozen=True)
class Conditions:
    """Conditions under which codes are tried.

    executor: Its workers score candidates, instead of this machine's processors.
    off_record: Arguments and results are not recorded (the rows of scores and observations never contain any).
    fixture: The surroundings of the code besides its arguments.
    accepted: Codes that a person has accepted, with their own surroundings.
    """

    executor: Executor | None = None
    off_record: bool = False
    fixture: Fixture = dataclasses.field(default_factory=Fixture)
    accepted: Mapping[str, Fixture] = dataclasses.field(default_factory=dict)


class Bench:
    """Bench on which code is tried, a `healing.advisor.Workbench`; for one advisor's thread at a time.

    trials: Makes the records.
    entry: The code's name in tracebacks and on record.
    budget_s: Seconds from now on.
    stop: Ends everything when it is set, within a second.
    on_progress: Called with the number of candidates tried so far.
    conditions: The conditions of the trials.
    reserve_s: The end of the budget, which is reserved for a second bench.
    """

    def __init__(
        self,
        trials: Trials,
        entry: EntryRef,
        budget_s: float,
        stop: threading.Event | None = None,
        on_progress: Callable[[int], object] = lambda _tried: None,
        *,
        conditions: Conditions | None = None,
        reserve_s: float = 0.0,
    ) -> None:
        self._conditions = conditions or Conditions()
        self._trials, self._entry = trials, entry
        self._deadline = time.monotonic() + budget_s - reserve_s
        self._budget_s = budget_s
        self._stop = stop or threading.Event()
        self._on_progress = on_progress
        self._limits = CheckLimits()
        self._think_time = _ThinkTime()
        #: Number of candidates tried so far.
        self.tried = 0

    @property
    def left_s(self) -> float:
        """Rest of the budget, in seconds; 0 once Stop was pressed."""
        return (
            0.0
            if self._stop.is_set()
            else max(0.0, self._deadline + self._think_time.total_s - time.monotonic())
        )

    @property
    def may_call(self) -> bool:
        """True where the validation of a patch may make calls that are not on record; candidates never do."""
        return bool(self._conditions.fixture.cassette.live)

    def beside(self, more_s: float) -> Bench:
        """Make another bench with so many seconds more, which shares the checks' limits and reports no progress.

        Time that does not count for one of them does not count for both.
        """
        bench = Bench(
            self._trials,
            self._entry,
            self._budget_s + more_s,
            self._stop,
            conditions=self._conditions,
        )
        bench._limits, bench._think_time = self._limits, self._think_time
        return bench

    @property
    def think_time_s(self) -> float:
        """Time spent waiting for a person so far."""
        return self._think_time.total_s

    def expect_hanging(self, checks: Iterable[Check]) -> None:
        """Mark checks as known not to end, so that no time is spent on finding out."""
        self._limits.expect_hanging(checks)

    def know(self, checks: Sequence[Check], results: Sequence[CheckResult]) -> None:
        """Set the checks' limits from the results of the unpatched code, if it already ran."""
        self._limits.learn(checks, results)

    @contextlib.contextmanager
    def off_the_clock(self) -> Iterator[None]:
        """Do the same as `Workbench.off_the_clock`."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._think_time.total_s += time.monotonic() - began

    def score(
        self,
        code: str,
        candidates: Iterable[Sequence[Edit]],
        checks: Sequence[Check],
        *,
        every: bool = False,
        slow: bool = False,
        as_code: bool = False,
        limit_s: float | None = None,
    ) -> Iterator[tuple[int, str]]:
        """Do the same as `Workbench.score`; without a candidate, nothing runs and nothing is recorded."""
        source = iter(candidates)
        first = list(islice(source, 1))
        if not first:
            return
        source = chain(first, source)
        times = SLOW_TIMES if slow else 1.0
        limits_s = [own_s * times for own_s in self._limits_of(code, checks, limit_s)]
        events: queue.SimpleQueue[CandidateRequest | Scores | None] = queue.SimpleQueue()
        passed = "." * len(checks)
        work = LoopTask(
            background.loop.submit,
            self._trials.score(
                Held(self._entry, code, checks, limits_s, self._conditions.fixture),
                candidate_source(events.put), events.put,
                every=every, as_code=as_code, executor=self._conditions.executor,
            ),
            lambda: events.put(None),
        )  # fmt: skip
        try:
            while (event := self._next(events)) is not None:
                if isinstance(event, CandidateRequest):
                    candidates = list(islice(source, event.count))
                    if event.drawn.set_running_or_notify_cancel():
                        event.drawn.set_result(candidates)
                    continue
                self.tried += len(event)
                self._on_progress(self.tried)
                if limit_s is not None and any(letters == passed for _, letters in event):
                    self._limits.grant(checks, limit_s)
                yield from event
            work.result()
        finally:
            work.end()

    def observe(self, code: str, checks: Sequence[Check]) -> list[Observed]:
        """Do the same as `Workbench.observe`; watching takes longer, so each check gets more time."""
        limits_s = [
            _WATCH_HANGING_S if self._limits.hangs(check) else min(limit_s * SLOW_TIMES, _WATCH_S)
            for check, limit_s in zip(checks, self._limits_of(code, checks), strict=True)
        ]
        request = Held(self._entry, code, checks, limits_s, self._found_by([code], checks))
        return self._wait(self._trials.observe(request))

    def values(self, code: str, checks: Sequence[Check], limit_s: float) -> list[CheckResult]:
        """Do the same as `Workbench.values`."""
        return self._wait(self._time(code, checks, [limit_s] * len(checks)))

    def run(
        self,
        codes: Sequence[str],
        checks: Sequence[Check],
        *,
        limit_s: float | None = None,
        accepted: bool = True,
    ) -> list[list[CheckResult]]:
        """Do the same as `Workbench.run`; each run is on record as a trial.

        accepted: False runs accepted code like any other.

        A run has the slow lane's time, or the time that a candidate once got. One code with only unknown checks is the
        unpatched code, so their limits are measured with it.
        """
        base = codes[0] if codes else ""
        fixture = self._found_by(codes, checks) if accepted else self._conditions.fixture
        if len(codes) == 1 and limit_s is None and not any(check in self._limits for check in checks):
            results = self._timed(base, checks, self._run_code)
            self._limits.learn(checks, results)
            return [results]
        limits_s = [own_s * SLOW_TIMES for own_s in self._limits_of(base, checks, limit_s)]
        if limit_s is None:
            limits_s = self._limits.lengthened(checks, limits_s)
        return self._wait(
            self._trials.check(
                self._entry, codes, checks, limits_s, off_record=self._conditions.off_record, fixture=fixture
            )
        )

    def _found_by(self, codes: Sequence[str], checks: Sequence[Check]) -> Fixture:
        """Return the surroundings of these codes in these checks; a check with its own source runs other code too."""
        accepted_fixture = self._conditions.accepted.get(codes[0]) if len(codes) == 1 else None
        return (
            self._conditions.fixture
            if accepted_fixture is None or any(check.call for check in checks)
            else accepted_fixture
        )

    def _limits_of(self, code: str, checks: Sequence[Check], limit_s: float | None = None) -> list[float]:
        """Return each check's time limit: the given one, or one measured once with the unpatched code."""
        if limit_s is not None:
            return [limit_s] * len(checks)
        new = [check for check in checks if check not in self._limits]
        if new:
            self._limits.learn(new, self._timed(code, new, self._time))
        return [self._limits[check] for check in checks]

    async def _time(self, code: str, checks: Sequence[Check], limits_s: Sequence[float]) -> list[CheckResult]:
        request = Held(self._entry, code, checks, limits_s, self._found_by([code], checks))
        return [observed.result for observed in await self._trials.observe(request, watch=False)]

    async def _run_code(
        self, code: str, checks: Sequence[Check], limits_s: Sequence[float]
    ) -> list[CheckResult]:
        run = self._trials.check(
            self._entry, [code], checks, limits_s, off_record=self._conditions.off_record,
            fixture=self._found_by([code], checks),
        )  # fmt: skip
        return (await run)[0]

    def _timed(self, code: str, checks: Sequence[Check], run: _Run) -> list[CheckResult]:
        """Run the unpatched code; of the slow checks, one gets much more time, and the others only if that one ends.

        A tool that hangs usually hangs on most of its inputs, and each would cost the whole limit.
        """

        def some(which: Sequence[int], limit_s: float) -> None:
            wanted = [checks[place] for place in which]
            timed = self._wait(run(code, wanted, [limit_s] * len(wanted)))
            results.update(zip(which, timed, strict=True))

        results: dict[int, CheckResult] = {}
        some(range(len(checks)), _TIMING_FIRST_S)
        late = [place for place in results if results[place].outcome == "timeout"]
        if late and not any(self._limits.hangs(checks[place]) for place in late):
            most_s = min(_TIMING_S, max(_TIMING_LEAST_S, self._budget_s * _TIMING_PART))
            some(late[:1], most_s)
            if len(late) > 1 and results[late[0]].outcome != "timeout":
                some(late[1:], most_s)
        return [results[place] for place in range(len(checks))]

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the coroutine's result; raise `BudgetSpent` if the budget ends first."""
        done: queue.SimpleQueue[None] = queue.SimpleQueue()
        work = LoopTask(background.loop.submit, coroutine, lambda: done.put(None))
        try:
            self._next(done)
            result: T = work.result()
            return result
        finally:
            work.end()

    def _next(self, events: queue.SimpleQueue[T]) -> T:
        """Return the next event; raise `BudgetSpent`."""
        while (left_s := self.left_s) > 0:
            try:
                return events.get(timeout=min(_TICK_S, left_s))
            except queue.Empty:
                continue
        reason = "it was stopped" if self._stop.is_set() else f"its {self._budget_s:g} s are up"
        raise BudgetSpent(
            f"The healing of {self._entry.tool_name!r} ends here: {reason}.",
            hint="The patches found so far are kept. To continue, use a larger budget_s.",
        )


@dataclasses.dataclass(frozen=True)
class CandidateRequest:
    """Request for so many candidates, which the advisor's thread answers."""

    count: int
    drawn: Future[Sequence[Candidate]]


def candidate_source(put: Callable[[CandidateRequest], object]) -> Draw:
    """Make a source of candidates that sends a request and waits for its answer."""

    async def draw(count: int) -> Sequence[Candidate]:
        request = CandidateRequest(count, Future())
        put(request)
        return await asyncio.wrap_future(request.drawn)

    return draw


class LoopTask:
    """Coroutine in healkit's loop that another thread can wait for, and end."""

    def __init__(
        self,
        submit: Callable[[Coroutine[Any, Any, Any]], Future[Any]],
        coroutine: Coroutine[Any, Any, Any],
        ended: Callable[[], None],
    ) -> None:
        self._over = threading.Event()
        self._coroutine, self._ended = coroutine, ended
        self._future = submit(self._run())

    def result(self) -> Any:
        """Return its result, or raise its exception; call it once it has ended."""
        return self._future.result(timeout=_SETTLE_S)

    def end(self) -> None:
        """Cancel it if it still runs, and wait until it has ended."""
        if not self._over.is_set():
            self._future.cancel()
            self._over.wait(_SETTLE_S)

    async def _run(self) -> Any:
        try:
            return await self._coroutine
        finally:
            self._over.set()
            self._ended()
