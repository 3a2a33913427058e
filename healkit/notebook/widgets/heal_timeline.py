"""Heal timeline: a run to be stepped through.

Unlike the other panels it keeps what it shows as its widget's state, so stepping needs no kernel; only a student's own
edit does. A run folder was sanitised when it was written; a run that was kept raw is sanitised here.
"""

from __future__ import annotations

from typing import Any

import traitlets

from healkit import values
from healkit.app import Healkit
from healkit.contracts.runs import Run
from healkit.errors import UsageInvalid
from healkit.notebook.cell_output import CellOutput
from healkit.notebook.widgets.page_data import PageData
from healkit.notebook.widgets.panel import Panel
from healkit.rendering import timeline
from healkit.runtime.execution import arguments_of

#: What of a story is a tool's or a user's; the rest is the contract's own words.
_PAYLOAD = ("arguments", "base", "failing", "attempts", "steps", "problems")


class HealTimeline(Panel):
    """A run as its folder has it; `teach` pauses before each patch and asks what one would change."""

    KIND = "HealTimeline"
    SAME_AS_CARD = True

    story = traitlets.Dict().tag(sync=True)

    def __init__(self, healkit: Healkit, run: Run, *, teach: bool = False) -> None:
        super().__init__(healkit, {"run_id": run.run_id})
        self.operations |= {"try_mine": self._try_mine}
        self.story = {**shown_story(run, self.recorded), "teach": teach}

    def static_card(self) -> CellOutput | None:
        """Draw the story as a card; for a class only up to the first patch, which would be given away."""
        if not self.story["teach"]:
            return CellOutput.of(timeline.card(self.story))
        steps = self.story["steps"]
        shown = {**self.story, "attempts": [], "steps": _before_patches(steps), "total": len(steps)}
        return CellOutput.of(timeline.card(shown))

    def _try_mine(self, code: str) -> dict[str, Any]:
        """Run a student's edit with the arguments that failed, in a restricted worker; nothing is saved."""
        log_id = self.story["log_id"]
        row = None if log_id is None else self.healkit.log.get(log_id)
        if row is not None and row.tool_name == self.story["tool"]:
            arguments = arguments_of(row)
        else:
            arguments = values.remade(self.story["arguments"])
        known = isinstance(arguments, dict) and values.is_whole(arguments) and not values.has_tags(arguments)
        if not self.story["tool"] or not known:
            raise UsageInvalid(
                "This run has no arguments on record to try an edit with.",
                hint=f"Run {self.story['tool'] or 'the tool'} with the arguments that you mean.",
            )
        tried = self.healkit.try_code(
            self.story["tool"], code, arguments, persona=self.story["persona"], on_output=lambda _: None
        )
        shown = {**self.recorded.execution(tried), "label": "Your edit"}
        if (failure := shown.get("failure")) and failure["place"]:
            failure["place"] = f"line {failure['lineno']} of your edit"  # which has no revision
        return {"run": shown, "delta": None}


def shown_story(run: Run, recorded: PageData) -> dict[str, Any]:
    """Return a run as a story without secrets."""
    story = timeline.story_of(run)
    if run.manifest is None or run.manifest.redaction_policy.payload == "raw":
        story |= {name: _cleaned(story[name], recorded) for name in _PAYLOAD}
    return story


def _cleaned(value: Any, recorded: PageData) -> Any:
    """Clean the value piece by piece: what is too long to be cleaned in one piece would be cut to a text."""
    if isinstance(value, list):
        return [recorded.clean(item).value for item in value]
    return recorded.clean(value).value


def _before_patches(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps up to the first patch."""
    first = next((at for at, step in enumerate(steps) if step["kind"] == "proposed"), len(steps))
    return steps[:first]
