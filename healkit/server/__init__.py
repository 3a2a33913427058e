"""The collector: a Jupyter Server extension, and a server of its own.

`collected` traces are taken in by `intake` (no HTTP), run by `service`, reached through `handlers`; `extension` mounts
those in Jupyter's server, `standalone` in one of its own (`healkit collect`).
"""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Called by Jupyter's server to find what there is to load."""
    return [{"module": "healkit.server"}]


def _load_jupyter_server_extension(serverapp: Any) -> None:
    """Called by Jupyter's server as it starts."""
    from healkit.server.extension import load

    load(serverapp)
