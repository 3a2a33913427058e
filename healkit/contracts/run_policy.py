"""Questions to a run's policy, and its answers.

The policy itself is `healkit.healing.run_policy`; the code that executes steps gets one as a `StepPolicy`.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

from healkit.contracts.runs import PolicyDefaults


@dataclasses.dataclass(frozen=True)
class Observation:
    """State in which a step ended; `failed` is True for a state to get out of."""

    state_key: str
    failed: bool
    fingerprint: str | None = None


@dataclasses.dataclass(frozen=True)
class Halt:
    """Reason why a run was ended: the cap, in words, the numbers behind it, and the state where one was the reason.

    `rule` is the `reason` of trace.jsonl, such as `same_state_revisit`; `reason` is the sentence.
    """

    rule: str
    reason: str
    count: int
    threshold: int
    state_key: str | None = None


@dataclasses.dataclass(frozen=True)
class PolicyVerdict:
    """Answer of a policy: go on, go on after `wait_ms`, do not (`refusal` says why), or the run is over (`halt`)."""

    halt: Halt | None = None
    refusal: str = ""
    wait_ms: int = 0
    same_state_count: int = 0

    @property
    def granted(self) -> bool:
        """True if the action may be done."""
        return self.halt is None and not self.refusal


class StepPolicy(Protocol):
    """Policy that is asked before each step and told of its end; it does nothing itself, and never waits."""

    @property
    def defaults(self) -> PolicyDefaults:
        """Caps in force, for the manifest."""
        ...

    def step(self) -> PolicyVerdict:
        """Ask for a step before it begins; a granted one counts."""
        ...

    def retry(self, action: str, error_code: str, ename: str = "") -> PolicyVerdict:
        """Ask to try a failed action again; a grant counts, and names the pause before it."""
        ...

    def seen(self, state_key: str) -> int:
        """Return how often that failing state was observed so far."""
        ...

    def observe(self, observation: Observation) -> PolicyVerdict:
        """Tell how a step ended; the verdict is on the run, not on the step."""
        ...
