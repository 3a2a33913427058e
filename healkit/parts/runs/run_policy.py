"""Anti-loop policy of a run.

It counts, compares and answers. It reads no clock, waits for nothing and touches no file, so a test can try every
sequence of questions. Its caps are rows of one table: the occasion, the count, the cap. A healing has two more caps:
identical errors under different code, and two alternating states. In any other run these would be false alarms: a tool
may well fail in the same way on each of ten inputs.

There are three kinds of answer. A *refusal* is about one action: it is not tried again, and the caller continues with
something else. A *halt* ends the run: it is the answer to everything asked after it. Every step counts against the cap
on steps, so that cap ends a caller that ignores all refusals. There is no silent loop.

Only a failing state can be observed too often. If a tool answers "not yet" a hundred times, the caller is polling; that
ends at the cap on steps.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Literal

from healkit.core.rendering import plain
from healkit.errors import is_retryable
from healkit.parts.runs.contract import Halt, Observation, PolicyDefaults, PolicyVerdict

#: `step`, `retry` and `recovery` are asked before they are done; `observation` is reported after a step.
Occasion = Literal["step", "observation", "retry", "recovery"]


@dataclasses.dataclass
class RunHistory:
    """Counts of granted and observed things so far; `trail` contains the observations in order."""

    steps: int = 0
    recoveries: int = 0
    retries: Counter[str] = dataclasses.field(default_factory=Counter)
    states: Counter[str] = dataclasses.field(default_factory=Counter)
    trail: list[Observation] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class RunCap:
    """Cap: on `occasion`, `count` (of the subject: an action or a state) may not exceed `cap`.

    `halts`: The run then ends; otherwise only this one thing is refused. `reason` is filled in with `_words`.
    """

    name: str
    occasion: Occasion
    count: Callable[[RunHistory, str], int]
    cap: Callable[[PolicyDefaults], int]
    halts: bool
    reason: str


def _words(count: int, cap: int) -> dict[str, str]:
    """Return the fields of a reason: the numbers with their nouns."""
    return {
        "count": f"{count}",
        "count_attempts": plain.count(count, "attempt"),
        "count_times": plain.count(count, "time"),
        "cap_steps": plain.count(cap, "step"),
        "cap_times": plain.count(cap, "time"),
        "allowed": f"{cap} {'is' if cap == 1 else 'are'} allowed",
    }


def _if_granted(counted: Callable[[RunHistory, str], int]) -> Callable[[RunHistory, str], int]:
    """Return a count that includes the requested thing."""
    return lambda history, subject: counted(history, subject) + 1


RUN_CAPS: tuple[RunCap, ...] = (
    RunCap(
        "hard_cap_steps",
        "step",
        _if_granted(lambda history, _: history.steps),
        lambda defaults: defaults.hard_cap_steps,
        halts=True,
        reason="The run has made {cap_steps}, which is the limit.",
    ),
    RunCap(
        "same_state_revisit",
        "observation",
        lambda history, state: history.states[state],
        lambda defaults: defaults.same_state_revisits,
        halts=True,
        reason="The same failing state was observed {count_times}; {allowed}. No attempt changes it.",
    ),
    RunCap(
        "retries_per_action",
        "retry",
        _if_granted(lambda history, action: history.retries[action]),
        lambda defaults: defaults.retries_per_action,
        halts=False,
        reason="This action was already retried {cap_times}.",
    ),
    RunCap(
        "recovery_max",
        "recovery",
        _if_granted(lambda history, _: history.recoveries),
        lambda defaults: defaults.recovery_max,
        halts=True,
        reason="The run has recovered {cap_times}, which is the limit.",
    ),
)


def _identical_errors(history: RunHistory, _: str) -> int:
    """Count the newest observations in a row that failed with the same fingerprint, whatever the code."""
    last = history.trail[-1].fingerprint if history.trail else None
    if last is None:
        return 0
    tail = itertools.takewhile(lambda seen: seen.failed and seen.fingerprint == last, reversed(history.trail))
    return sum(1 for _ in tail)


def _ping_pong(history: RunHistory, _: str) -> int:
    """Count the newest observations that alternate between two failing states."""
    trail = history.trail
    if len(trail) < 2 or trail[-1].state_key == trail[-2].state_key:
        return 0
    turns = (trail[-1].state_key, trail[-2].state_key)
    return sum(
        1
        for _ in itertools.takewhile(
            lambda at: at[1].failed and at[1].state_key == turns[at[0] % 2], enumerate(reversed(trail))
        )
    )


#: Caps of a healing.
HEAL_CAPS: tuple[RunCap, ...] = (
    *RUN_CAPS,
    RunCap(
        "identical_errors",
        "observation",
        _identical_errors,
        lambda defaults: defaults.max_identical_errors,
        halts=True,
        reason="{count_attempts} in a row ended in the same error; {allowed}. No attempt changes it.",
    ),
    RunCap(
        "ping_pong",
        "observation",
        _ping_pong,
        lambda defaults: defaults.max_ping_pong,
        halts=True,
        reason="The last {count} attempts alternated between the same two failures; {allowed}.",
    ),
)


class RunPolicy:
    """Policy of one run: ask it before a step, a retry or a recovery, and report each observation to it.

    Not thread-safe; the run that owns it asks under its own lock.
    """

    def __init__(self, defaults: PolicyDefaults | None = None, rules: tuple[RunCap, ...] = RUN_CAPS) -> None:
        self.defaults = defaults or PolicyDefaults()
        self.history = RunHistory()
        self.halted: Halt | None = None
        self._rules = rules

    def step(self) -> PolicyVerdict:
        """Ask for another step; halt at the cap on steps."""
        verdict = self._ask("step")
        self.history.steps += verdict.granted
        return verdict

    def seen(self, state_key: str) -> int:
        """Return how often that failing state was observed so far."""
        return self.history.states[state_key]

    def observe(self, observation: Observation) -> PolicyVerdict:
        """Record how a step ended; halt if that state was observed too often."""
        if self.halted is None:
            self.history.trail.append(observation)
            self.history.states[observation.state_key] += observation.failed
        if not observation.failed:
            return PolicyVerdict(halt=self.halted, same_state_count=self.seen(observation.state_key))
        verdict = self._ask("observation", observation.state_key, observation.state_key)
        return dataclasses.replace(verdict, same_state_count=self.seen(observation.state_key))

    def retry(self, action: str, error_code: str, ename: str = "") -> PolicyVerdict:
        """Ask to try the same action again unchanged; a grant names the pause before it.

        ename: The exception's type, if the error is one.

        Refused for an error that is not retryable, and over the cap on retries of one action.
        """
        if self.halted is None and not is_retryable(error_code, ename):
            return PolicyVerdict(refusal=f"A retry after {error_code} would fail again.")
        verdict = self._ask("retry", action)
        if not verdict.granted:
            return verdict
        pauses = self.defaults.backoff_ms
        wait_ms = pauses[min(self.history.retries[action], len(pauses) - 1)]
        self.history.retries[action] += 1
        return dataclasses.replace(verdict, wait_ms=wait_ms)

    def recovery(self) -> PolicyVerdict:
        """Ask for one more recovery; halt over the cap."""
        verdict = self._ask("recovery")
        self.history.recoveries += verdict.granted
        return verdict

    def _ask(self, occasion: Occasion, subject: str = "", state_key: str | None = None) -> PolicyVerdict:
        if self.halted is not None:
            return PolicyVerdict(halt=self.halted)
        for rule in self._rules:
            if rule.occasion != occasion:
                continue
            count, cap = rule.count(self.history, subject), rule.cap(self.defaults)
            if count <= cap:
                continue
            reason = rule.reason.format_map(_words(count, cap))
            if not rule.halts:
                return PolicyVerdict(refusal=reason)
            self.halted = Halt(rule.name, reason, count, cap, state_key)
            return PolicyVerdict(halt=self.halted)
        return PolicyVerdict()
