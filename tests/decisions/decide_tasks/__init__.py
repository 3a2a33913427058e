"""Tasks on public data: steps, and the right result.

The steps are those that a chooser would choose.

A task is a dict: `name`; `data`, the names of its views at the start, each a file in `data/`; `steps`, choices as the
decision loop takes them, the last of which names the final view; `expect`, which computes the right final view from the
same frames with pandas alone.
"""

from __future__ import annotations

from decide_tasks import aggregated, corrected, filtered, joined  # noqa: F401 - each adds its tasks
from decide_tasks.building import TASKS, load

__all__ = ["TASKS", "load"]
