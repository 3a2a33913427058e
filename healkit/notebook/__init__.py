"""Notebook face: extension, magics, completion, live panels.

Importing it hands the panels to the app, which is on a floor below and cannot import them.
"""

from __future__ import annotations

from typing import Any

from healkit.runtime import panels


def _panel(kind: str) -> Any:
    """Return the class of a panel; anywidget is loaded when the first one is opened."""
    from healkit.notebook import widgets

    return getattr(widgets, kind)


panels.register(_panel)
