"""What post-mortem hooks into."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl

if TYPE_CHECKING:
    from healkit.parts.post_mortem.post_mortem import PostMortem
    from healkit.parts.post_mortem.retained import RetainedWorkers


@hookimpl
def retainer(retire: Callable[[Any], None]) -> RetainedWorkers:
    """Return what keeps a few workers of failed runs."""
    from healkit.parts.post_mortem.retained import RetainedWorkers

    return RetainedWorkers(retire)


@hookimpl
def inspector() -> str:
    """Return the module that answers in the worker."""
    return "healkit.parts.post_mortem.stack_inspector"


@hookimpl
def post_mortem(trace_id: str, label: str) -> PostMortem:
    """Return what asks the worker of that execution."""
    from healkit.parts.post_mortem.post_mortem import PostMortem

    return PostMortem(trace_id, label)
