"""Extension of IPython: loads healkit into a notebook.

`%load_ext healkit` adds magics, one hook and a completion matcher to an ordinary kernel. The shell keeps a list of
them, so that unloading removes exactly those, even after the package was reloaded.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from healkit.faces.notebook.completion import healkit_matcher
from healkit.faces.notebook.magic_parsers import PARSERS
from healkit.parts.cells.own_cells import notebook_cells

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


_ADDED = "_healkit_added"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add healkit to the shell; called by `%load_ext healkit`. A second call changes nothing."""
    if hasattr(shell, _ADDED):
        return
    from healkit.faces.notebook.magics import HealkitMagics

    magics = HealkitMagics(shell)
    for name, parser in PARSERS.items():
        kind = "cell" if name == "tool" else "line"
        magics.magics[kind][name].__func__.__doc__ = parser().format_help()  # shown by `%run_tool?`
    replaced = {
        kind: {name: shell.magics_manager.magics[kind].get(name) for name in magics.magics[kind]}
        for kind in ("line", "cell")
    }
    shell.register_magics(magics)
    shell.events.register("pre_run_cell", magics.before_cell)
    shell.events.register("post_run_cell", magics.after_cell)
    notebook_cells.find = magics.cells.find
    shell.Completer.custom_matchers.append(healkit_matcher)
    setattr(shell, _ADDED, (magics, healkit_matcher, replaced))


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove healkit and end the workers; called by `%unload_ext healkit` and by `%reload_ext`."""
    if not hasattr(shell, _ADDED):
        return
    take_out(shell)
    if "healkit.app" in sys.modules:
        from healkit.faces.defaults import release  # late: a notebook that ran nothing has not imported it

        release()


def take_out(shell: InteractiveShell) -> None:
    """Remove everything that loading added, and close the panels; restore magics that had the same names before."""
    magics, matcher, replaced = getattr(shell, _ADDED)
    manager = shell.magics_manager
    for kind, names in replaced.items():
        for name, before in names.items():
            if before is not None:
                manager.magics[kind][name] = before
            else:
                manager.magics[kind].pop(name, None)
    manager.registry.pop(type(magics).__name__, None)
    for event, hook in (("pre_run_cell", magics.before_cell), ("post_run_cell", magics.after_cell)):
        if hook in shell.events.callbacks[event]:
            shell.events.unregister(event, hook)
    notebook_cells.find = lambda _number: None
    if matcher in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(matcher)
    if magics in shell.configurables:
        shell.configurables.remove(magics)
    delattr(shell, _ADDED)
    if (panels := sys.modules.get("healkit.faces.notebook.widgets.panel")) is not None:
        panels.close_all()
