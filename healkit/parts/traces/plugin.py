"""What traces hook into.

The recorder's cleaner, which makes them, and their sending.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl, rows_of

if TYPE_CHECKING:
    from healkit.parts.traces.trace_collector import Tracer
    from healkit.parts.traces.traces import Traces
    from healkit.services import Services


@hookimpl
def commands() -> Mapping[str, Callable[[], Any]]:
    """`healkit trace sync`."""
    return rows_of("healkit.parts.traces.commands", "trace sync")


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`traces`."""
    return {"traces": _traces}


@hookimpl
def cleaner(services: Services) -> Tracer:
    """Return the tracer."""
    traces: Traces = services.traces
    return traces.tracer


@hookimpl
def opened(services: Services) -> None:
    """Start sending."""
    services.traces.start()


@hookimpl
def recorded(services: Services, send: bool) -> None:
    """Wake the sender."""
    if send:
        services.traces.notify()


@hookimpl
def status(services: Services) -> Mapping[str, Any]:
    """Say how many traces are in each state."""
    return {"traces": services.traces.state()}


@hookimpl
def closed(services: Services) -> None:
    """Send as many waiting traces as time allows, including the newest."""
    services.traces.close()


def _traces(services: Services) -> Traces:
    from healkit.parts.traces.traces import Traces

    return Traces(services.database, services.config)
