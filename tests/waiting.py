"""Bounded waits for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

#: Long enough for a machine whose cores are all busy with something else.
WITHIN_S = 60.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.002, 0.05


def wait_until(condition: Callable[[], Found], within_s: float = WITHIN_S) -> Found:
    """Return the first true value of `condition`; fail the test after `within_s` seconds."""
    until, pause_s = time.monotonic() + within_s, _FIRST_PAUSE_S
    while not (found := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"still {found!r} after {within_s:g} s")
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    return found
