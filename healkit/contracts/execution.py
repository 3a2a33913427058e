"""Execution as data, for its caller and from the log."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING, Any

from healkit.contracts.failure import Failure
from healkit.contracts.labels import revision_label
from healkit.contracts.records import CallRecord, DecisionRecord, Grants
from healkit.errors import is_refused

if TYPE_CHECKING:
    from healkit.config import ExplainLevel


@dataclasses.dataclass(frozen=True)
class ExecutionData:
    """Outcome of one tool call: a value or a failure, and its place on record.

    Fresh from `Healkit.execute` it holds the `value` itself; read back from the log it holds the summary only, and
    `value` is None. `outputs` are nbformat output dicts. `decisions` are the branches that the tool reported.
    `conversions` says what of the arguments or the result arrived as what it holds. `warnings` are healkit's own: what
    else the caller should know. `grants` are those it ran with. `run_id` is the run whose folder records it, if one
    does. `status` is `SUCCESS`, `FAILURE`, or `RUNNING` for a row of the log that has not ended. `code` is the code
    that ran, where it is at hand. `explained` is how far the configuration lets a failure be explained. A failing cell
    of a notebook's own has this form too, with the origin `cell`: it ran in that notebook's kernel, not in a worker,
    and is in no log.
    """

    tool_name: str
    persona: str
    arguments: dict[str, Any]
    status: str
    trace_id: str
    timestamp: datetime
    log_id: int | None = None
    value: Any = None
    failure: Failure | None = None
    result_summary: str | None = None
    outputs: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    calls: list[CallRecord] = dataclasses.field(default_factory=list)
    decisions: list[DecisionRecord] = dataclasses.field(default_factory=list)
    duration_ms: float | None = None
    isolation: str | None = None
    revision: int | None = None
    origin: str = "python"
    last_output: str = ""
    conversions: list[str] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    grants: Grants = Grants()
    run_id: str | None = None
    code: str | None = dataclasses.field(default=None, repr=False)
    explained: ExplainLevel = "fix"

    @property
    def label(self) -> str:
        """Name and revision: `fibonacci v2`, or `fibonacci v2 (teacher)` for another persona."""
        return revision_label(self.tool_name, self.persona, self.revision)

    @property
    def ok(self) -> bool:
        """True if it ended with a value."""
        return self.status == "SUCCESS"

    @property
    def refused(self) -> bool:
        """True for a call that was refused before any code ran: it was wrong, or could not be started."""
        return self.failure is not None and is_refused(self.failure.code)
