"""Collector of traces, as a Jupyter extension or a server.

`ingest` reads and stores batches, `trace_queries` reads questions, `collector_service` runs both on threads, `handlers`
are its HTTP routes; `extension` mounts those in Jupyter's server, `standalone` in one of its own (`healkit collect`).
"""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """List the extension; called by Jupyter's server."""
    return [{"module": "healkit.server"}]


def _load_jupyter_server_extension(serverapp: Any) -> None:
    """Mount the collector; called by Jupyter's server as it starts."""
    from healkit.server.extension import load

    load(serverapp)
