"""Dock: panels at the right-hand side of the window.

JupyterLab and Notebook 7 have a sidebar there, which no kernel can reach by itself; ipylab's extension of them can, on
a kernel's request. One panel of a title is kept there: a second log would only be in the way of the first. A panel
whose kernel was restarted is closed by the page, as soon as the new kernel docks one of that title.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

from healkit.errors import DockUnavailable
from healkit.notebook.cell_output import live_page

if TYPE_CHECKING:
    from healkit.notebook.widgets.panel import Panel  # a panel docks itself by this module

#: ipylab's handle on the window; one for the kernel, made when it is first needed.
_window: Any = None
#: What is docked: a panel's title → the box around it, and the panel.
_docked: dict[str, tuple[Any, Panel]] = {}


def add(panel: Panel) -> None:
    """Show a panel in the window's right sidebar, in place of the one of its title; raises `DockUnavailable`."""
    global _window
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # traitlets has one for the way it lists its traits
            import ipylab
    except ImportError:
        raise DockUnavailable(
            "A panel can be docked only where ipylab is installed.",
            hint="pip install 'healkit[dock]', for this kernel and for Jupyter; then reload the page.",
        ) from None
    if not live_page():
        raise DockUnavailable("There is no window to dock a panel in.", hint="Leave the dock out.")
    if _window is None:
        _window = ipylab.JupyterFrontEnd()
    if panel.title in _docked:
        take_away(_docked[panel.title][1])
    box = ipylab.Panel(children=[panel])
    box.title.label = panel.title
    box.title.caption = f"{panel.title} (healkit)"
    panel.box_id = box.model_id

    def to_front(tab: str) -> None:
        front(panel, tab)

    panel.operations["front"] = to_front
    _docked[panel.title] = box, panel
    # A tab that is newer has a lower rank, and so is the first: also where another kernel's are, or a dead one's.
    _window.shell.add(box, "right", {"rank": -time.time()})


def take_away(panel: Panel) -> None:
    """Close a panel and its tab, if it is docked still."""
    box, docked = _docked.get(panel.title, (None, None))
    if box is None or docked is not panel:
        return
    del _docked[panel.title]
    if _window is not None:  # a reloaded page draws what this list holds
        kept = [one for one in _window.shell._widgets if not _is_of(one, box)]
        _window.shell.set_trait("_widgets", kept)
    for part in (panel, box.layout, box.title, box):
        part.close()


def close() -> None:
    """Take everything away that was docked, and let go of the window."""
    global _window
    for _, panel in list(_docked.values()):
        take_away(panel)
    window, _window = _window, None
    if window is not None:
        for part in (window.shell, window.commands, window.sessions, window.menu, window.toolbar, window):
            part.close()


def front(panel: Panel, tab: str) -> None:
    """Bring a panel to the front that its page reports as hidden; `tab` is the page's id for it.

    Only the newest panel comes: an older one whose page was slow would hide it. Notebook 7 has only a command that
    toggles. JupyterLab has that too, but it would close the sidebar when another panel is at the front by then.
    """
    if _window is None or panel.title != next(reversed(_docked), None):
        return
    if "application:toggle-panel" in _window.commands.list_commands():
        asked = {"side": "right", "title": panel.title, "id": tab}
        _window.commands.execute("application:toggle-panel", asked)
    else:
        _window.commands.execute("tabsmenu:activate-by-id", {"id": tab})


def _is_of(placed: dict[str, Any], box: Any) -> bool:
    """Tell if that is the page's entry for this box."""
    return bool(placed.get("serializedWidget") == f"IPY_MODEL_{box.model_id}")
