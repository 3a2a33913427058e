"""The dock: panels at the right-hand side of the window.

JupyterLab and Notebook 7 have a sidebar there, which no kernel can reach by itself; ipylab's extension of them can, on
a kernel's word. One panel of a kind is kept there: a second log beside the first would only be in its way.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from healkit.errors import DockUnavailable
from healkit.notebook.shown import live_page

if TYPE_CHECKING:
    from healkit.notebook.widgets.panel import Panel

#: ipylab's handle on the window; one for the kernel, made when it is first needed.
_window: Any = None
#: What is docked: the panel's kind → the box around it, and the panel.
_docked: dict[str, tuple[Any, Panel]] = {}


def add(panel: Panel, title: str) -> None:
    """Show a panel in the window's right sidebar, in place of the one of its kind; raises `DockUnavailable`."""
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
        _window.shell.observe(_placed, "_widgets")
    _take_away(panel.KIND)
    box = ipylab.Panel(children=[panel])
    box.title.label = title
    box.title.caption = f"{title} (healkit)"
    _docked[panel.KIND] = box, panel
    _window.shell.add(box, "right", {"rank": 0})


def close() -> None:
    """Take everything away that was docked, and let go of the window."""
    global _window
    for kind in list(_docked):
        _take_away(kind)
    window, _window = _window, None
    if window is not None:
        for part in (window.shell, window.commands, window.sessions, window.menu, window.toolbar, window):
            part.close()


def _placed(change: Any) -> None:
    """Bring what was just put into the sidebar to the front; called when the page says that it is there.

    JupyterLab and Notebook 7 have a command each, and neither has the other's. The former counts the sidebar's tabs, of
    which rank 0 is the first.
    """
    if _window is None or len(change["new"]) <= len(change["old"]):
        return
    known, placed = _window.commands.list_commands(), change["new"][-1]
    if "application:toggle-sidebar-widget" in known:
        _window.commands.execute("application:toggle-sidebar-widget", {"side": "right", "index": 0})
    elif "application:toggle-panel" in known:
        title = next((box.title.label for box, _ in _docked.values()), "")
        asked = {"side": "right", "title": title, "id": placed["id"]}
        _window.commands.execute("application:toggle-panel", asked)


def _take_away(kind: str) -> None:
    if kind in _docked:
        box, panel = _docked.pop(kind)
        for part in (panel, box.layout, box.title, box):
            part.close()
