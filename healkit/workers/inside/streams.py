"""The kernel's stdout and stderr, with a budget."""

from __future__ import annotations

import threading
from typing import Any

from ipykernel.iostream import OutStream

from healkit.workers.inside.capture import OVER_LIMIT, Output, OutputLimit


class KernelStream(OutStream):  # type: ignore[misc]  # ipykernel carries no types
    """ipykernel's output stream; over the budget, writing raises `OutputLimit`."""

    def write(self, string: str) -> Any:
        """Write; called by print and everything else that writes, and by ipykernel's thread that watches the pipe."""
        if not Output.admit(string):
            if threading.current_thread() is getattr(self, "watch_fd_thread", None):
                return 0
            raise OutputLimit(OVER_LIMIT)
        Output.remember(string)
        return super().write(string)
