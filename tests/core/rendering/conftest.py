"""Executions to draw, as `Healkit.execute` would return them."""

from __future__ import annotations

from typing import Any

import pytest
from rendering_samples import FRAMES, NOW, TRACEBACK

from healkit.core.contracts.failure import Failure
from healkit.core.runtime.execution import Execution


@pytest.fixture
def make():
    """Return a function that makes an execution with any fields replaced; a failed one unless a value is given."""

    def build(**fields: Any) -> Execution:
        failed = "value" not in fields and "status" not in fields
        base: dict[str, Any] = {
            "tool_name": "fibonacci",
            "persona": "default",
            "arguments": {"n": 10},
            "status": "FAILURE" if failed else "SUCCESS",
            "trace_id": "0198",
            "timestamp": NOW,
            "log_id": 4,
            "revision": 1,
            "duration_ms": 34.2,
            "isolation": "namespaces",
            "failure": Failure("TOOL_EXCEPTION", "ValueError", "bad", TRACEBACK, FRAMES) if failed else None,
        }
        return Execution(**{**base, **fields})

    return build
