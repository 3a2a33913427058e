"""Hooks of the notebook: the live panels of a `Healkit`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl

if TYPE_CHECKING:
    from healkit.faces.notebook.panels import Panels
    from healkit.services import Services


#: A panel's class → its module.
PANELS = {
    "AuditPanel": "decision_panels",
    "CellFix": "cell_order",
    "CellOrder": "cell_order",
    "DecidePanel": "decision_panels",
    "HealPanel": "heal_panel",
    "HealTimeline": "heal_panel",
    "LogBrowser": "log_panels",
    "MapPanel": "map_panel",
    "PatchEditor": "patch_editor",
    "TracebackView": "log_panels",
}


@hookimpl
def panels() -> Mapping[str, Callable[[], Any]]:
    """Return healkit's own panels."""
    return {name: partial(_load, name) for name in PANELS}


def _load(name: str) -> Any:
    return getattr(importlib.import_module(f"healkit.faces.notebook.widgets.{PANELS[name]}"), name)


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """Return `panels` with its methods."""
    return {
        "panels": _panels,
        "browse": lambda services: services.panels.browse,
        "patch_editor": lambda services: services.panels.patch_editor,
        "heal_panel": lambda services: services.panels.heal_panel,
        "timeline": lambda services: services.panels.timeline,
        "decide_panel": lambda services: services.panels.decide_panel,
        "audit_panel": lambda services: services.panels.audit_panel,
    }


def _panels(services: Services) -> Panels:
    from healkit.app import open_healkits
    from healkit.faces.notebook.panels import Panels

    return Panels(next(healkit for healkit in open_healkits if healkit.services is services))
