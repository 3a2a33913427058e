"""Packages of the extra `healkit[learn]`, loaded late."""

from __future__ import annotations

import importlib
from typing import Any

from healkit.errors import UsageInvalid


def load(name: str) -> Any:
    """Import a package of the extra; raise `UsageInvalid`, which says how to get it, where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageInvalid(f"This needs {name}.", hint="pip install 'healkit[learn]'") from None
