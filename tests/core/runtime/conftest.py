"""Fixtures of the runtime's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from healkit import Execution, Healkit


@pytest.fixture
def failed(healkit: Healkit) -> Callable[..., Execution]:
    """Saves a tool under its first `def`'s last name, runs it, and returns its failure."""

    def run(code: str, name: str = "tool", **arguments: Any) -> Execution:
        healkit.vault.add(name, code)
        execution = healkit.execute(name, arguments=arguments)
        assert execution.failure is not None
        return execution

    return run
