"""Half of `notebook_kernel` that runs in the kernel.

It makes the kernel as good as new for the next test.

What a test can leave in a kernel is undone, and then compared with what there was after the start. healkit's workers
stay warm: each execution has a fresh one anyway.
"""

from __future__ import annotations

import copy
import gc
import linecache
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.core.history import HistoryManager

#: Set by the launcher for the kernel's process, and not the test's to choose.
_OWN = ("JPY_PARENT_PID", "JPY_INTERRUPT_EVENT")
_CONFIG = copy.deepcopy(get_ipython().config)
_fresh: dict[str, Any] = {}


def renew(environment: Mapping[str, str], folder: str) -> None:
    """Forget every test before; go on in that folder with that environment."""
    shell: Any = get_ipython()
    _end_healkit(shell)
    _forget_widgets()
    _forget_modules()
    shell.compile._filename_map.clear()
    linecache.clearcache()
    shell.history_manager.end_session()
    shell.configurables.remove(shell.history_manager)
    shell.history_manager = HistoryManager(shell=shell, parent=shell, hist_file=":memory:")
    shell.configurables.append(shell.history_manager)
    shell.reset(new_session=False)
    shell.execution_count = 1
    shell.config.clear()  # %config writes here, where the next extension to be loaded reads
    shell.config.update(copy.deepcopy(_CONFIG))
    shell._last_traceback = None
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
    os.environ.update({**environment, **{name: os.environ[name] for name in _OWN if name in os.environ}})
    for name in os.environ.keys() - environment.keys() - set(_OWN):
        del os.environ[name]
    os.chdir(folder)
    now = _state(shell)
    _fresh.update({} if _fresh else now)
    left = [f"{part}: {now[part]} was {_fresh[part]}" for part in now if now[part] != _fresh[part]]
    if left:
        raise RuntimeError(f"the kernel is not as it was: {left}")
    gc.freeze()  # so that the next collection looks at what one test has made


def _end_healkit(shell: Any) -> None:
    """Take the extension out as `%unload_ext` does, and close what has a database open, but end no worker."""
    if (sessions := sys.modules.get("healkit.faces.notebook.widgets.heal_panel")) is not None:
        sessions.end_all()
    if (extension := sys.modules.get("healkit.faces.notebook.ipython_extension")) is not None and hasattr(
        shell, extension._ADDED
    ):
        extension.take_out(shell)
    shell.extension_manager.loaded.discard("healkit")
    if (panels := sys.modules.get("healkit.faces.notebook.widgets.panel")) is not None:
        panels.close_all()
    if (app := sys.modules.get("healkit.app")) is not None:
        for healkit in list(app.open_healkits):
            healkit.close()


def _forget_widgets() -> None:
    """Close every widget, and what else listens to a page."""
    if (widgets := sys.modules.get("ipywidgets")) is not None:
        widgets.Widget.close_all()
    if (comm := sys.modules.get("comm")) is not None:
        comm.get_comm_manager().comms.clear()


def _forget_modules() -> None:
    """Let go of what a test imported from a folder of its own."""
    kept = tuple({sys.prefix, sys.base_prefix, *(path for path in _fresh.get("path", sys.path) if path)})
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != __name__ and isinstance(file, str) and not file.startswith(kept) and "healkit" not in name:
            del sys.modules[name]


def _state(shell: Any) -> dict[str, Any]:
    """Return what a cell could have changed and nothing above puts back."""
    return {
        "magics": {kind: sorted(names) for kind, names in shell.magics_manager.magics.items()},
        "hooks": {event: list(hooks) for event, hooks in shell.events.callbacks.items()},
        "matchers": list(shell.Completer.custom_matchers),
        "healkit's": [
            str(one) for one in (*vars(shell), *map(type, shell.configurables)) if "healkit" in str(one)
        ],
        "exceptions": shell.custom_exceptions,
        "config": repr(shell.config),
        "names": sorted(shell.user_ns),
        "path": list(sys.path),
        "excepthook": sys.excepthook,
        "log handlers": list(logging.getLogger().handlers),
        "count": shell.execution_count,
    }
