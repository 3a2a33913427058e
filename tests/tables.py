"""Tests that walk a table, and say which of its rows fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest


def each(check: Callable[..., None], rows: Mapping[str, Sequence[Any]]) -> None:
    """Call the check with each row's values; fail with the name of every row that does not pass, and why."""
    faults = []
    for name, values in rows.items():
        try:
            check(*values)
        except (Exception, pytest.fail.Exception) as error:
            faults.append(f"{name}: {type(error).__name__}: {str(error)[:1000]}")
    assert rows
    assert not faults, f"{len(faults)} of {len(rows)} rows fail:\n" + "\n".join(faults)
