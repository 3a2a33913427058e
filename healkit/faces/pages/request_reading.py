"""Patch requests for pages."""

from __future__ import annotations

from typing import Any

from healkit.core.rendering import plain
from healkit.faces.pages.operations import Operations
from healkit.parts.heal.records import PatchRequest

_REQUESTS_MAX = 100


class RequestReading(Operations):
    """Patches that wait for approval, then the decided ones; only a notebook or a terminal can decide."""

    NAMES: tuple[str, ...] = ("requests", "request")

    def requests(self) -> dict[str, Any]:
        """Return the newest requests, those that wait first, and the number of all that wait."""
        requests = self._healkit.requests.list(limit=_REQUESTS_MAX)
        return {
            "rows": [self._row(request) for request in requests],
            "waiting": self._healkit.requests.waiting(),
        }

    def request(self, number: int) -> dict[str, Any]:
        """Return one request with its code; raise `PatchRequestNotFound`."""
        request = self._healkit.requests.get(number)
        texts = {"reason": request.reason, "note": request.note, "decided_by": request.decided_by}
        return {
            **self._row(request),
            **self._recorded.shown(texts).value,
            "code": request.code,
            "parent": request.parent,
            "run_id": request.run_id,
            "log_id": request.motivating_log_id,
            "revision": request.revision,
            "decided": None if request.decided_at is None else request.decided_at.isoformat(),
        }

    def _row(self, one: PatchRequest) -> dict[str, Any]:
        texts = {"reason": plain.one_line(one.reason, 200), "by": one.advisor or one.author}
        return {
            "number": one.id,
            "label": one.label,
            "tool": one.tool_name,
            "persona": one.persona,
            "state": one.state,
            "verdict": one.said,
            "when": one.created_at.isoformat(),
            **self._recorded.shown(texts).value,
        }
