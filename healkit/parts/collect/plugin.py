"""What the collector hooks into: its command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from healkit.hooks import hookimpl, rows_of


@hookimpl
def commands() -> Mapping[str, Callable[[], Any]]:
    """`healkit collect`."""
    return rows_of("healkit.parts.collect.commands", "collect")
