"""Public names of healkit, loaded on first use.

So a worker can import `healkit.core.workers.inside` without the database, pandas or the widgets.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from healkit import package
from healkit.core import own_imports

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.config import Config
    from healkit.core.contracts.tools import Tool
    from healkit.core.runtime.execution import Execution
    from healkit.errors import HealkitError, ToolExecutionError
    from healkit.faces.defaults import execute_tool
    from healkit.faces.notebook.ipython_extension import load_ipython_extension, unload_ipython_extension
    from healkit.parts.sanitizer.sanitizer import sanitize

__version__ = package.VERSION

_HOMES = {
    "Config": "config",
    "Execution": "core.runtime.execution",
    "Healkit": "app",
    "HealkitError": "errors",
    "Tool": "core.contracts.tools",
    "ToolExecutionError": "errors",
    "execute_tool": "faces.defaults",
    "load_ipython_extension": "faces.notebook.ipython_extension",
    "sanitize": "parts.sanitizer.sanitizer",
    "unload_ipython_extension": "faces.notebook.ipython_extension",
}

__all__ = [
    "Config",
    "Execution",
    "Healkit",
    "HealkitError",
    "Tool",
    "ToolExecutionError",
    "__version__",
    "execute_tool",
    "load_ipython_extension",
    "sanitize",
    "unload_ipython_extension",
]


own_imports.add_finder()  # before the first import of another package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
