"""State that a check can change in its process, restored.

Each part is compared first where comparing is cheaper than setting; restoring an unchanged state costs a few
microseconds.
"""

from __future__ import annotations

import _thread
import builtins
import gc
import os
import random
import socket
import sys
from typing import Any

from healkit.workers.inside.capture import OVER_LIMIT, TOOL_MODULE, Output, OutputLimit
from healkit.workers.inside.endpoint import Endpoint
from healkit.workers.inside.proxies import Trace, build_servers
from healkit.workers.inside.scratch import empty_folder
from healkit.workers.inside.subprocess_main import PlainStream

_modules, _path, _builtins, _environment = sys.modules, sys.path, builtins.__dict__, os.environ
#: Its undecoded content: comparing the mapping itself decodes every name, which took a third of a check.
_variables: dict[Any, Any] = os.environ._data  # type: ignore[attr-defined]  # CPython's own mapping behind it


class Silence(PlainStream):
    """stdout and stderr of a check: counted, so that a flood ends, and kept nowhere."""

    def write(self, text: str) -> int:
        """Count; called by print. Over the budget it raises `OutputLimit`."""
        if not Output.admit(text):
            raise OutputLimit(OVER_LIMIT)
        return len(text)


class ProcessState:
    """State of this process, as each check is to find it."""

    def __init__(self, output_max_bytes: int, folder: str) -> None:
        self._output_max_bytes = output_max_bytes
        self._folder = folder
        self._stream = Silence()
        closed, other = socket.socketpair()
        endpoint = Endpoint(closed)
        endpoint.close()
        other.close()
        #: Names in a tool's namespace besides its own; it has nothing to call.
        self.names: dict[str, Any] = {"mcp": build_servers(endpoint, []), "trace": Trace(endpoint)}
        random.seed(0)  # same for every candidate, so that outcomes are reproducible
        self.remember()

    def remember(self) -> None:
        """Take the present state for the one to go back to."""
        gc.freeze()
        self._kept_modules = dict(_modules)
        self._kept_path = list(_path)
        self._kept_builtins = dict(_builtins)
        self._kept_variables = dict(_variables)
        self._kept_environment = dict(_environment)
        self._depth = sys.getrecursionlimit()
        self._random = random.getstate()
        numpy = _modules.get("numpy")
        self._numpy = None if numpy is None else (numpy.random, numpy.random.get_state())

    def begin(self) -> None:
        """Before a check: its output goes nowhere, and has a limit."""
        sys.stdout = sys.stderr = self._stream
        Output.left_chars, Output.exceeded = self._output_max_bytes, False

    def restore(self) -> bool:
        """After a check; False when something is left that only the end of the process removes: a thread."""
        Output.left_chars = None
        if sys.getrecursionlimit() != self._depth:
            sys.setrecursionlimit(self._depth)
        sys.settrace(None)
        sys.setprofile(None)
        gc.enable()
        random.setstate(self._random)
        if self._numpy is not None:
            self._numpy[0].set_state(self._numpy[1])
        if _builtins != self._kept_builtins:
            _builtins.clear()
            _builtins.update(self._kept_builtins)
        if _path != self._kept_path:
            _path[:] = self._kept_path
        sys.path, sys.modules, os.environ = _path, _modules, _environment
        _modules.pop(TOOL_MODULE, None)
        if len(_modules) != len(self._kept_modules) or _modules != self._kept_modules:
            self._restore_modules()
        if _variables != self._kept_variables:
            _environment.clear()
            _environment.update(self._kept_environment)
        os.chdir(self._folder)
        empty_folder(self._folder)
        return _thread._count() == 0

    def _restore_modules(self) -> None:
        """Keep what was imported from an installed file; undo what a check made, removed or replaced."""
        for name, module in list(_modules.items()):
            if name not in self._kept_modules and self._installed(module):
                self._kept_modules[name] = module
        _modules.clear()
        _modules.update(self._kept_modules)

    def _installed(self, module: Any) -> bool:
        spec = getattr(module, "__spec__", None)
        place = getattr(spec, "origin", None)
        if place in ("built-in", "frozen"):
            return True
        return isinstance(place, str) and os.path.isabs(place) and not place.startswith(self._folder + os.sep)
