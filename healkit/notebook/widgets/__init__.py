"""Live panels, each a Python file and a JavaScript file.

Each is one Python file here and one JavaScript file in `js/src/`; the bundle in `static/` is built from those by
`npm run build`, and is committed with the licences of what is in it. A panel is always the second output: the static
card above it is what still reads when the kernel is gone.

Importing this package loads anywidget; nothing else of healkit does, until a panel is opened.
"""

from __future__ import annotations

from healkit.notebook.widgets.cell_order import CellOrder
from healkit.notebook.widgets.heal_panel import HealPanel
from healkit.notebook.widgets.heal_timeline import HealTimeline
from healkit.notebook.widgets.log_browser import LogBrowser
from healkit.notebook.widgets.panel import Panel
from healkit.notebook.widgets.patch_editor import PatchEditor
from healkit.notebook.widgets.post_mortem import PostMortemPanel
from healkit.notebook.widgets.traceback_view import TracebackView

__all__ = [
    "CellOrder",
    "HealPanel",
    "HealTimeline",
    "LogBrowser",
    "Panel",
    "PatchEditor",
    "PostMortemPanel",
    "TracebackView",
]
