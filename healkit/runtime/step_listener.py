"""Listener to one execution.

The executor tells it what happens, as it happens; no mistake of the listener's reaches the tool. The one of this module
forgets everything; `healkit.runtime.steps.RunStep` writes it into a run folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from healkit.contracts.execution import CallRecord, Finished, Started
    from healkit.contracts.vault import VaultEntry
    from healkit.errors import HealkitError


class StepListener:
    """Listener to one execution; this one forgets it. All of it may be called on any thread."""

    run_id: str | None = None
    problem: str = ""
    #: Pause before another try that the policy has granted, in seconds; None where the outcome stands.
    retry_in_s: float | None = None

    #: Log rows of the attempts before this one; None for one that is not in the database yet.
    attempts: tuple[int | None, ...] = ()

    def next_try(self) -> StepListener:
        """Return the listener to that other try; called when the pause is over."""
        return self

    def admit(self, started: Started) -> None:
        """Asked before anything else; raises `PolicyHalted` or `RunNotAllowed` for a step that may not begin."""

    def proposed(self, base: VaultEntry, code: str) -> None:
        """Other code than the stored is to be tried."""

    def judged(self, fault: HealkitError | None) -> None:
        """Hear that the code can be run as this tool, or why not."""

    def observed(self, started: Started, entry: VaultEntry) -> None:
        """Hear that the tool was found and its code has its hash."""

    def prepared(self, started: Started, timeout_s: float, mode: str) -> None:
        """Nothing speaks against the call; told before its row is written."""

    def started(self, log_id: int | None) -> None:
        """Hear that its RUNNING row is committed; the worker comes next."""

    def acted(self) -> None:
        """Hear that it called a tool with side effects, itself or through others; told before its end."""

    def refused(self, started: Started, finished: Finished) -> None:
        """Hear that it ended without having been run, without a worker to run it, or cancelled from outside."""

    def ended(
        self, finished: Finished, encoded: str, outputs: list[dict[str, Any]], calls: list[CallRecord]
    ) -> None:
        """Hear that it ended, in a value (`encoded`, as JSON) or a failure."""


#: For an execution that is no step of a run.
UNRECORDED = StepListener()
