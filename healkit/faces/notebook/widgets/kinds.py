"""Live panels by name, for the app, which cannot import them.

The app is on a floor below the notebook: importing this module hands it what finds a panel.
"""

from __future__ import annotations

import importlib
from typing import Any

from healkit.faces.notebook import panels

#: A panel's class → its module.
KINDS = {
    "AuditPanel": "decision_panels",
    "CellFix": "cell_order",
    "CellOrder": "cell_order",
    "DecidePanel": "decision_panels",
    "HealPanel": "heal_panel",
    "HealTimeline": "heal_panel",
    "LogBrowser": "log_panels",
    "PatchEditor": "patch_editor",
    "TracebackView": "log_panels",
}


def panel_class(kind: str) -> Any:
    """Return the class of a panel; anywidget is loaded when the first one is opened."""
    return getattr(importlib.import_module(f"healkit.faces.notebook.widgets.{KINDS[kind]}"), kind)


panels.register(panel_class)
