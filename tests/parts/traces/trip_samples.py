"""Tool that calls and decides; what its traces must not show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from healkit import Config, Healkit
from healkit.parts.traces.contract import ExecutionTrace

#: What looks like a secret, made up at run time so that no scanner takes it for one.
KEY = "AKIA" + "Q3EGXAMPL7TOOZ5B"

TRIP = """
def trip(city: str, days: int, token: str = ""):
    trace.decision("length", "short" if days < 4 else "long", f"{days} < 4")
    first = mcp.host.forecast(city=city, days=days)
    trace.decision("weather", first["sky"])
    try:
        mcp.host.book(hotel=42)
    except Exception:
        trace.decision("booking", False, "the hotel is full")
    return {"city": city, "sky": first["sky"]}
"""


def opened(path: Path, **changes: Any) -> Healkit:
    """Open a Healkit with that tool, in the tier that is quickest to start."""
    settings: dict[str, Any] = {"isolation": "process", "start_timeout_s": 30.0}
    healkit = Healkit(path, config=Config(**(settings | changes)))
    healkit.provide(lambda city, days: {"sky": "clear", "api_key": KEY, "days": days}, "forecast")
    healkit.provide(lambda hotel: 1 / 0, "book")
    healkit.vault.add("trip", TRIP)
    return healkit


def trace_of(healkit: Healkit, trace_id: str) -> ExecutionTrace:
    """Return the trace of an execution, which must be there."""
    trace = healkit.traces.get(trace_id)
    assert trace is not None
    return trace
