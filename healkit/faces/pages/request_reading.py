"""Patch requests as a page reads them."""

from __future__ import annotations

from typing import Any

from healkit.core.rendering import plain
from healkit.faces.pages.operations import Operations
from healkit.parts.heal.records import PatchRequest

_REQUESTS_MAX = 100


class RequestReading(Operations):
    """Patches that wait for approval, then the decided ones; deciding is left to a notebook or a terminal."""

    NAMES: tuple[str, ...] = ("requests", "request")

    def requests(self) -> dict[str, Any]:
        """Return the newest requests, those that wait first, and how many wait in all."""
        found = self._healkit.requests.list(limit=_REQUESTS_MAX)
        return {"rows": [self._row(one) for one in found], "waiting": self._healkit.requests.waiting()}

    def request(self, number: int) -> dict[str, Any]:
        """Return one request with its code; raise `PatchRequestNotFound`."""
        found = self._healkit.requests.get(number)
        shown = {"reason": found.reason, "note": found.note, "decided_by": found.decided_by}
        return {
            **self._row(found),
            **self._recorded.shown(shown).value,
            "code": found.code,
            "parent": found.parent,
            "run_id": found.run_id,
            "log_id": found.motivating_log_id,
            "revision": found.revision,
            "decided": None if found.decided_at is None else found.decided_at.isoformat(),
        }

    def _row(self, one: PatchRequest) -> dict[str, Any]:
        told = {"reason": plain.one_line(one.reason, 200), "by": one.advisor or one.author}
        return {
            "number": one.id,
            "label": one.label,
            "tool": one.tool_name,
            "persona": one.persona,
            "state": one.state,
            "verdict": one.said,
            "when": one.created_at.isoformat(),
            **self._recorded.shown(told).value,
        }
