"""What a run's policy is asked, and what it answers.

The policy itself is `healkit.healing.run_policy`; whoever executes steps knows it as a `StepPolicy` and is handed one.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

from healkit.contracts.runs import PolicyDefaults


@dataclasses.dataclass(frozen=True)
class Observation:
    """What a step was seen to end in. `failed` is whether the state is one to get out of."""

    state_key: str
    failed: bool
    fingerprint: str | None = None


@dataclasses.dataclass(frozen=True)
class Halt:
    """Why a run was ended: the rule, in words, the numbers behind it, and the state where one was the reason."""

    rule: str
    reason: str
    count: int
    threshold: int
    state_key: str | None = None


@dataclasses.dataclass(frozen=True)
class PolicyVerdict:
    """The answer: go on, go on after `wait_ms`, do not (`refusal` says why), or the run is over (`halt`)."""

    halt: Halt | None = None
    refusal: str = ""
    wait_ms: int = 0
    same_state_count: int = 0

    @property
    def granted(self) -> bool:
        """Whether what was asked for may be done."""
        return self.halt is None and not self.refusal


class StepPolicy(Protocol):
    """Asked before each step and told of its end; it does nothing itself, and never waits."""

    @property
    def defaults(self) -> PolicyDefaults:
        """The caps in force, for the manifest."""
        ...

    def step(self) -> PolicyVerdict:
        """Asked before a step begins; one that is granted counts."""
        ...

    def seen(self, state_key: str) -> int:
        """How often that failing state has been observed so far."""
        ...

    def observe(self, observation: Observation) -> PolicyVerdict:
        """Told how a step ended; the verdict is on the run, not on the step."""
        ...
