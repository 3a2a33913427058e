"""What the notebook adds to a `Healkit`: live panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl

if TYPE_CHECKING:
    from healkit.faces.notebook.panels import Panels
    from healkit.services import Services


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`panels` with its methods."""
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
