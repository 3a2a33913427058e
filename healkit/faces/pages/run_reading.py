"""Runs for pages: the list, and one step by step."""

from __future__ import annotations

from typing import Any

from healkit.faces.pages.operations import Operations
from healkit.faces.pages.page_data import PageData
from healkit.parts.heal import timeline
from healkit.parts.runs import render_runs as runs
from healkit.parts.runs.contract import Run
from healkit.parts.runs.reader import read_run
from healkit.parts.runs.run_folders import check_run_id, run_folders

_PAGE_RUNS = 25
#: Fields of a story that come from a tool or a user; all others are the contract's own words.
_PAYLOAD = ("arguments", "base", "failing", "attempts", "steps", "problems")


class RunReading(Operations):
    """Run folders beside the database."""

    NAMES: tuple[str, ...] = ("runs", "story")

    def runs(self, text: str = "", before: int = 0) -> dict[str, Any]:
        """Return a page of runs whose id contains that text, newest first; `before`: number of newer runs to skip."""
        folders = [path for path in run_folders(self._healkit.runs_dir) if text.strip() in path.name][::-1]
        page = folders[max(before, 0) :][:_PAGE_RUNS]
        end = max(before, 0) + len(page)
        return {
            "rows": [self._row(read_run(path)) for path in page],
            "older": end if end < len(folders) else None,
        }

    def story(self, run_id: str) -> dict[str, Any]:
        """Return a run to step through; raise `RunFolderError` for an invalid id, and `RunNotFound`."""
        run = read_run(self._healkit.runs_dir / check_run_id(run_id))
        return {**shown_story(run, self._recorded), "teach": False}

    def _row(self, run: Run) -> dict[str, Any]:
        began = run.manifest.started_at if run.manifest is not None else None
        failed = (run.events[-1].result or {}).get("failures") if run.finished else None
        tools = dict.fromkeys(
            event.action_spec.tool_name for event in run.events if event.action_spec is not None
        )
        return {
            "run_id": run.path.name,
            "profile": run.manifest.execution_profile.name if run.manifest is not None else "",
            "when": None if began is None else began.isoformat(),
            "events": len(run.events),
            "finished": run.finished,
            "failures": failed if isinstance(failed, int) else 0,
            **self._recorded.shown({"outcome": runs.outcome(run), "tools": list(tools)[:5]}).value,
        }


def shown_story(run: Run, recorded: PageData) -> dict[str, Any]:
    """Return a run as a story without secrets."""
    story = timeline.story_of(run)
    if run.manifest is None or run.manifest.redaction_policy.payload == "raw":
        story |= {name: _cleaned(story[name], recorded) for name in _PAYLOAD}
    return story


def _cleaned(value: object, recorded: PageData) -> Any:
    """Clean the value piece by piece, because a value that is too long for the sanitiser would be cut to a text."""
    if isinstance(value, list):
        return [recorded.clean(item).value for item in value]
    return recorded.clean(value).value
