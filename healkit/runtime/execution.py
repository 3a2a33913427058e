"""Execution, as its caller asks for it and gets it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.config import Mode
from healkit.contracts.execution import ExecutionData, Grants, Started, host_identity, new_trace_id, utc_now
from healkit.errors import PostMortemError
from healkit.rendering import parts
from healkit.runtime.call_events import CallEvent, OnCall, events_of
from healkit.runtime.step_listener import UNRECORDED, StepListener

if TYPE_CHECKING:
    from healkit.failures import Explanation
    from healkit.rendering.document import Card
    from healkit.runtime.authority import Caller
    from healkit.runtime.post_mortem import PostMortem

#: Gets each output, an nbformat dict, as it comes.
OnOutput = Callable[[dict[str, Any]], None]
#: Call that lists trials and searches too.
_ALL_OF_THEM = "hk.executions(tried=True)"


@dataclasses.dataclass(frozen=True)
class ExecutionRequest:
    """Call, as a face makes it. `on_output` gets nbformat output dicts as they come; `stop` ends the run.

    `code` is run in the place of the stored one, as a candidate that is not saved; `step` is told what happens.
    `caller` is the execution that makes a nested call; it bounds what the tool may do. `within` are the grants that a
    nested execution had, where its call is repeated.
    """

    tool_name: str
    persona: str = "default"
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    timeout_s: float | None = None
    mode: Mode | None = None
    origin: str = "python"
    parent_trace_id: str | None = None
    depth: int = 0
    on_output: OnOutput | None = None
    on_call: OnCall | None = None
    stop: asyncio.Event | None = None
    code: str | None = None
    step: StepListener = UNRECORDED
    caller: Caller | None = None
    within: Grants | None = None

    def started(self) -> Started:
        """Return the beginning of the record, of which only this request is known yet."""
        return Started(
            trace_id=new_trace_id(),
            timestamp=utc_now(),
            tool_name=self.tool_name,
            persona=self.persona,
            arguments="{}",
            origin=self.origin,
            host=host_identity(),
            deadline=utc_now(),
            parent_trace_id=self.parent_trace_id,
            run_id=self.step.run_id,
        )


@dataclasses.dataclass(frozen=True)
class Execution(ExecutionData):
    """Outcome of one tool call: a value or a failure, and where it is on record.

    `explain`, `post_mortem` and `to_notebook` look into a failure; `to_text` and `to_html` show it as a card.
    """

    @property
    def events(self) -> list[CallEvent]:
        """Beginning and end of each call, in the order of their times; as `on_call` was told, read from the record."""
        return events_of(self.calls)

    def post_mortem(self) -> PostMortem:
        """Return the failed run's worker, to be asked for frames, locals and expressions, while it is kept.

        In the process that ran the tool only. Raises `PostMortemGone` with the reason when there is none to ask, and
        `PostMortemError` when the run did not fail.
        """
        from healkit.runtime.post_mortem import PostMortem

        if self.failure is None:
            raise PostMortemError(f"{self.label} did not fail: there is nothing to look into.")
        return PostMortem(self.trace_id, self.label)

    def explain(self) -> Explanation | None:
        """Explain the failure in plain words: what happened, where, why, a hint, a fix; None where there is no failure.

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
        from healkit.runtime.failure_export import write_notebook

        return write_notebook(self, path, replay, overwrite=overwrite)

    def to_markdown(self) -> str:
        """Write the failure as a bug report in Markdown, secrets hidden."""
        from healkit.runtime.failure_export import markdown_of

        return markdown_of(self)

    def to_text(self) -> str:
        """Write the card as plain text, for a terminal or a log."""
        from healkit.rendering import execution, text_of  # late: most executions are never shown

        return text_of(execution.card(self))

    def to_html(self) -> str:
        """Write the card as static HTML that reads in an untrusted notebook too."""
        from healkit.rendering import execution, html_of

        return html_of(execution.card(self))

    def __str__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what Jupyter shows; called by IPython's display formatter."""
        return {"text/plain": self.to_text(), "text/html": self.to_html()}


class Executions(list[Execution]):
    """Page of the log as a list; `left_out` counts the trials and searches that it does not show."""

    def __init__(self, executions: Iterable[Execution] = (), left_out: int = 0) -> None:
        super().__init__(executions)
        self.left_out = left_out

    def to_text(self) -> str:
        """Write a table, and what is left out."""
        from healkit.rendering import text_of

        return text_of(self._card())

    def to_html(self) -> str:
        """Write the same as a card."""
        from healkit.rendering import html_of

        return html_of(self._card())

    def _card(self) -> Card:
        from healkit.rendering import listings

        return listings.executions(self, left_out=self.left_out, ask=_ALL_OF_THEM)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return self.to_html()

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Print it as a whole; IPython in a terminal would print a list item by item."""
        printer.text(self.to_text())
