"""Samples that the tests of the syncer share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tracing_samples import Sender

TRACE_3 = pytest.mark.requirement("TRACE-3")


def everything_sent(sender: Sender) -> Callable[[], bool]:
    return lambda: set(sender.states().values()) == {"sent"}
