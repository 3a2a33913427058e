"""One execution as its caller gets it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit import rendering
from healkit.config import ExplainLevel
from healkit.contracts.failure import Failure
from healkit.contracts.records import CallRecord, DecisionRecord, Grants
from healkit.errors import PostMortemError
from healkit.rendering import parts

if TYPE_CHECKING:
    from healkit.rendering.explaining import Explanation
    from healkit.runtime.post_mortem import PostMortem

#: What lists trials and searches too.
_ALL_OF_THEM = "hk.executions(tried=True)"


@dataclasses.dataclass(frozen=True)
class Execution:
    """The outcome of one tool call: a value or a failure, and where it is on record.

    Fresh from `Healkit.execute` it holds the `value` itself; read back from the log it holds the summary only,
    and `value` is None. `outputs` are nbformat output dicts. `decisions` are the branches that the tool told of.
    `conversions` says what of the arguments or the result JSON could not hold. `warnings` are healkit's own: what else
    the caller should know. `grants` are those it ran with. `run_id` is the run whose folder records it, if one does.
    `status` is `SUCCESS`, `FAILURE`, or `RUNNING` for a row of the log that has not ended. `code` is what was run,
    where it is at hand. `explained` is how far the configuration lets a failure be explained.

    A failing cell of a notebook's own has this form too, with the origin `cell`: it ran in that notebook's kernel, not
    in a worker, and is in no log.
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
        """`fibonacci@2`, or `fibonacci.teacher@2` for another persona."""
        persona = "" if self.persona == "default" else f".{self.persona}"
        revision = "" if self.revision is None else f"@{self.revision}"
        return f"{self.tool_name}{persona}{revision}"

    @property
    def ok(self) -> bool:
        """Whether it ended with a value."""
        return self.status == "SUCCESS"

    def post_mortem(self) -> PostMortem:
        """The failed run's worker, to be asked for frames, locals and expressions, while it is kept.

        In the process that ran the tool only. Raises `PostMortemGone` with the reason when there is none to ask, and
        `PostMortemError` when the run did not fail.
        """
        from healkit.runtime.post_mortem import PostMortem

        if self.failure is None:
            raise PostMortemError(f"{self.label} did not fail: there is nothing to look into.")
        return PostMortem(self.trace_id, self.label)

    def explain(self) -> Explanation | None:
        """The failure in plain words: what happened, where, why, a hint, a way to mend it; None where there is none.

        As far as the configuration allows (`explain`).
        """
        explanation = parts.explanation(self)
        return None if explanation is None else explanation.at(self.explained)

    def to_notebook(
        self, path: str | Path, *, replay: Execution | None = None, overwrite: bool = False
    ) -> Path:
        """Write the failure as a notebook that runs without healkit, secrets hidden; returns the file.

        replay: a later execution with the same arguments that passed, to be shown below (`Healkit.replay_of`). Raises
        `UsageInvalid` for what did not fail, has no code at hand, or cannot be written there.
        """
        from healkit.runtime.exporting import write_notebook

        return write_notebook(self, path, replay, overwrite=overwrite)

    def to_markdown(self) -> str:
        """The failure as a bug report in Markdown, secrets hidden."""
        from healkit.runtime.exporting import markdown_of

        return markdown_of(self)

    def to_text(self) -> str:
        """The card as plain text, for a terminal or a log."""
        return rendering.execution_text(self)

    def to_html(self) -> str:
        """The card as static HTML that reads in an untrusted notebook too."""
        return rendering.execution_html(self)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What Jupyter shows; called by IPython's display formatter."""
        return {"text/plain": self.to_text(), "text/html": self.to_html()}


class Executions(list[Execution]):
    """One page of the log as a list; `left_out` counts the trials and searches that it does not show."""

    def __init__(self, executions: Iterable[Execution] = (), left_out: int = 0) -> None:
        super().__init__(executions)
        self.left_out = left_out

    def to_text(self) -> str:
        """A table, and what is left out."""
        return rendering.executions_text(self, left_out=self.left_out, ask=_ALL_OF_THEM)

    def to_html(self) -> str:
        """The same as a card."""
        return rendering.executions_html(self, left_out=self.left_out, ask=_ALL_OF_THEM)

    def _repr_html_(self) -> str:
        """Called by a notebook that shows it."""
        return self.to_html()

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Called by IPython in a terminal, which would print a list item by item."""
        printer.text(self.to_text())
