"""Notes for telling a run: the steps so far, and their links."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from healkit.contracts.runs import EvidenceRef, Run, TraceEvent
from healkit.errors import EvidenceChanged
from healkit.rendering import plain

#: Characters of one code that are shown; the run folder holds the rest.
CODE_MAX_CHARS = 40_000
_FRAME = re.compile(r'^ *File "<[^>"]+>", line (\d+)', re.MULTILINE)


class Notes:
    """Notes on the events told so far; a subclass has a method `_<event type>` for each event it tells of."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._start = run.events[0].ts_utc if run.events else None
        self._kept: dict[tuple[str | None, str], EvidenceRef] = {}
        self._actions: dict[str | None, str] = {}
        for event in run.events:
            for ref in event.evidence_refs:
                self._kept.setdefault((event.step_id, ref.kind), ref)
            if event.action_spec is not None:
                self._actions.setdefault(event.step_id, event.action_spec.kind)
        self.steps: list[dict[str, Any]] = []
        self.attempts: list[dict[str, Any]] = []
        self.label = self.tool = self.base = ""
        self.persona = "default"
        self.log_id: int | None = None
        self.arguments: Any = None
        self.failing: dict[str, Any] | None = None

    def tell(self, event: TraceEvent) -> None:
        """Take one more event; skip one that says nothing to a person."""
        teller: Callable[[TraceEvent], None] | None = getattr(self, f"_{event.event_type}", None)
        if teller is None:
            return
        try:
            teller(event)
        except EvidenceChanged as changed:
            self._step(event, "untold", changed.message, "bad")
        except Exception as error:  # noqa: BLE001 - an event that cannot be told costs itself only
            said = f"The event {event.event_type} cannot be told: {type(error).__name__}."
            self._step(event, "untold", said, "warn")

    def _step(self, event: TraceEvent, kind: str, title: str, tone: str = "", **more: Any) -> dict[str, Any]:
        step = {
            "kind": kind,
            "seq": event.seq,
            "step_id": event.step_id,
            "after": _after(self._start, event.ts_utc),
            "title": title,
            "tone": tone,
            "text": [],
            "facts": [],
            **more,
        }
        self.steps.append(step)
        return step

    def _earlier(self, event: TraceEvent, *kinds: str) -> dict[str, Any] | None:
        """Return the newest step of one of these kinds that belongs to the same step of the run."""
        own = (s for s in reversed(self.steps) if s["step_id"] == event.step_id and s["kind"] in kinds)
        return None if event.step_id is None else next(own, None)

    def _attempt(self, event: TraceEvent) -> dict[str, Any] | None:
        own = (a for a in reversed(self.attempts) if a["step_id"] == event.step_id)
        return next(own, None)

    def _evidence(self, event: TraceEvent, kind: str) -> str:
        """Return a piece of evidence as text; empty where there is none, or no longer; raise `EvidenceChanged`."""
        ref = self._kept.get((event.step_id, kind))
        try:
            return "" if ref is None else self._run.read_evidence(ref).decode(errors="replace")
        except OSError:
            return ""

    def _code(self, event: TraceEvent, kind: str) -> str:
        return self._evidence(event, kind)[:CODE_MAX_CHARS]

    def _data(self, event: TraceEvent, kind: str) -> Any:
        try:
            return json.loads(self._evidence(event, kind) or "null")
        except (ValueError, RecursionError):
            return None


def _after(start: datetime | None, moment: datetime) -> str:
    """Write the time since the run's beginning; empty where a clock was set back."""
    took = (moment - start).total_seconds() * 1000 if start is not None else -1.0
    return plain.duration(took) if took >= 0 else ""


def difference_of(before: str, after: str) -> str:
    """Write the unified diff of two codes without its two head lines; empty where nothing differs."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    return "\n".join(list(lines)[2:])


def failing_line(failure: dict[str, Any]) -> int | None:
    """Find the innermost line of the tool's own code in a recorded failure, from 1."""
    frames = failure.get("frames")
    own = [f for f in frames if isinstance(f, dict) and f.get("in_tool")] if isinstance(frames, list) else []
    if own and isinstance(own[-1].get("lineno"), int):
        return int(own[-1]["lineno"])
    found = _FRAME.findall(str(failure.get("traceback") or ""))
    return int(found[-1]) if found else None
