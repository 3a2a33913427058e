"""healkit: run generated code safely, keep every failure, mend it.

This face only names. Each name is loaded when it is first used, so that `healkit.workers.inside` can be imported in
a worker without the database, pandas or the widgets coming along.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.config import Config
    from healkit.contracts.tools import Tool
    from healkit.defaults import execute_tool
    from healkit.errors import HealkitError, ToolExecutionError
    from healkit.notebook.extension import load_ipython_extension, unload_ipython_extension
    from healkit.runtime.execution import Execution
    from healkit.tracing.sanitizing import sanitize

__version__ = "0.1.0"

_HOMES = {
    "Config": "healkit.config",
    "Execution": "healkit.runtime.execution",
    "Healkit": "healkit.app",
    "HealkitError": "healkit.errors",
    "Tool": "healkit.contracts.tools",
    "ToolExecutionError": "healkit.errors",
    "execute_tool": "healkit.defaults",
    "load_ipython_extension": "healkit.notebook.extension",
    "sanitize": "healkit.tracing.sanitizing",
    "unload_ipython_extension": "healkit.notebook.extension",
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


def __getattr__(name: str) -> Any:
    """Load a public name from its home; called by Python when the name is not here yet."""
    if name not in _HOMES:
        raise AttributeError(f"module 'healkit' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
