"""Answers of Jupyter's server to a page; it only reads.

No operation here runs a tool, changes one or decides on a request. That is done in a notebook or a terminal, where the
code is.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from healkit import hooks
from healkit.app import Healkit
from healkit.core.rendering.execution_card import grant_lines
from healkit.errors import UsageInvalid
from healkit.faces.pages.operations import EXACT, Operation, Operations, taken
from healkit.faces.pages.page_data import PageData
from healkit.parts.doctor.doctor import tier_of, trust_report


class StateReading(Operations):
    """News, and the status."""

    NAMES: tuple[str, ...] = ("news", "status", "waiting")
    #: The server's last news, when they were read, and when the folder of the runs had changed.
    _last: tuple[dict[str, Any], float, int] | None = None

    def news(self) -> dict[str, Any]:
        """Return a mark for each list, which changes with the list, and the number of waiting requests.

        It is cheap enough to be called every two seconds; if the database has not changed, the server is not queried.
        """
        healkit, began_s, last = self._healkit, time.monotonic(), self._last
        changes, changed_ns = healkit.database.changes, 0
        with contextlib.suppress(OSError):  # perhaps there was no run yet
            changed_ns = healkit.runs_dir.stat().st_mtime_ns
        if changes and last and last[2] == changed_ns and not changes.may_differ(last[1]):
            return last[0]
        counts = [healkit.log.count(status=status) for status in (None, "RUNNING", "FAILURE")]
        waiting, first = healkit.requests.waiting(), healkit.requests.list(limit=1)
        audited = healkit.audit.head().entries
        marks = {
            "failures": counts,
            "executions": counts,
            "tools": [healkit.vault.stamp(), counts],
            "runs": [changed_ns, audited, counts],
            "decisions": audited,
            "requests": [waiting, [(request.id, request.state) for request in first]],
        }
        news = {"marks": {name: repr(mark) for name, mark in marks.items()}, "waiting": waiting}
        self._last = news, began_s, changed_ns
        return news

    def waiting(self) -> dict[str, Any]:
        """Return the isolation in force, the number of waiting requests, and what an untrusted database would grant."""
        healkit = self._healkit
        summary = {"isolation": tier_of(healkit.config), "waiting": healkit.requests.waiting()}
        if not healkit.database.trusted:
            report = trust_report(healkit.database)
            grants = [
                f"{label}: {', '.join(grant_lines(tool_grants))}"
                for label, tool_grants in report.grants.items()
            ]
            summary["untrusted"] = {
                "place": report.place,
                "identity": healkit.database.identity(),
                "tools": report.tools,
                "grants": grants,
                "requests": list(report.requests),
            }
        return summary

    def status(self) -> dict[str, Any]:
        """Return the isolation in force, the counts, and problems, if any."""
        status = self._healkit.status()
        texts = self._recorded.shown({"database": status.url, "problem": status.problem}).value
        return {
            "isolation": status.tier,
            "tools": status.tools,
            "executions": status.executions,
            "failures": status.failures,
            "running": status.running,
            "waiting": status.requests,
            **texts,
        }


class SidePanelPages:
    """Answers to the requests of side panels and stand-alone pages on one Healkit, from any thread."""

    def __init__(self, healkit: Healkit) -> None:
        self.healkit, self.recorded = healkit, PageData(healkit)
        self.operations: dict[str, Operation] = {}
        for subjects in hooks.every("pages", healkit=healkit, recorded=self.recorded):  # healkit's own last
            for subject in subjects:
                self.operations |= subject.operations

    def answer(self, op: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return `{value}` without secrets; raise `UsageInvalid` for an unknown request, and the operation's errors."""
        if (operation := self.operations.get(op)) is None:
            raise UsageInvalid(f"There is no question {op[:50]!r}.", hint="Reload the page, then try again.")
        value = operation(**taken(operation, op, arguments))
        return self.recorded.on_page({"value": value}, exact=EXACT.get(op, ()))
