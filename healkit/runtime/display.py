"""Showing a worker's outputs in the user's own notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from healkit.rendering.outputs import safe_output


def notebook_display() -> Callable[[dict[str, Any]], None] | None:
    """Return a function that displays one output in the running cell, or None outside of a notebook."""
    return show if hasattr(_shell(), "kernel") else None


def in_ipython() -> bool:
    """Return True where magics can be typed: in a notebook, or in IPython in a terminal."""
    return _shell() is not None


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def show(output: dict[str, Any]) -> None:
    """Display one nbformat output, cleaned of what could act in the user's page."""
    clean = safe_output(output)
    if clean is None or clean["output_type"] == "error":  # a failure is raised, not displayed
        return
    if clean["output_type"] == "stream":
        stream = sys.stderr if clean.get("name") == "stderr" else sys.stdout
        stream.write(clean["text"])
        return
    from IPython.display import display

    display(clean["data"], metadata=clean.get("metadata") or {}, raw=True)
