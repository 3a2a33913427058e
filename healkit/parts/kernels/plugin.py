"""What restricted kernels hook into: their commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from healkit.hooks import hookimpl, rows_of


@hookimpl
def commands() -> Mapping[str, Callable[[], Any]]:
    """`healkit kernelspec`."""
    return rows_of("healkit.parts.kernels.commands", "kernelspec")
