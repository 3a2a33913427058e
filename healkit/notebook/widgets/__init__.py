"""Live panels, each a Python file and a JavaScript file.

The JavaScript is in `js/src/`; `npm run build` makes the bundle in `static/`, which is committed with the licences of
what is in it. A panel is always the second output: the static card above it can be read when the kernel is gone.

Importing this package loads anywidget; nothing else in healkit does.
"""

from __future__ import annotations

from healkit.notebook.widgets.audit_panel import AuditPanel
from healkit.notebook.widgets.cell_order import CellOrder
from healkit.notebook.widgets.decide_panel import DecidePanel
from healkit.notebook.widgets.heal_panel import HealPanel
from healkit.notebook.widgets.heal_timeline import HealTimeline
from healkit.notebook.widgets.log_browser import LogBrowser
from healkit.notebook.widgets.panel import Panel
from healkit.notebook.widgets.patch_editor import PatchEditor
from healkit.notebook.widgets.post_mortem import PostMortemPanel
from healkit.notebook.widgets.traceback_view import TracebackView

__all__ = [
    "AuditPanel",
    "CellOrder",
    "DecidePanel",
    "HealPanel",
    "HealTimeline",
    "LogBrowser",
    "Panel",
    "PatchEditor",
    "PostMortemPanel",
    "TracebackView",
]
