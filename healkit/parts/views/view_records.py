"""Data views, as frozen data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec


class ViewColumn(msgspec.Struct, frozen=True):
    """Column of a view, with the count of its nulls."""

    name: str
    dtype: str
    nulls: int


class DataView(msgspec.Struct, frozen=True):
    """Frame or array that was kept, under a name and by its content; written once, never changed.

    `kind` is its class, such as `DataFrame`; `shape` is as in numpy. `columns` are empty if it is not a table.
    `created_by` is the tool that took or returned it, or `user`. `size_bytes` is the size of the file; `file` is None
    after an eviction. `references` counts the recorded executions that took or returned it.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    columns: list[ViewColumn]
    created_by: str
    created_at: datetime
    sha256: str
    size_bytes: int
    file: Path | None
    references: int = 0

    @property
    def row_count(self) -> int:
        """Rows of a table, or items along an array's first axis."""
        return self.shape[0] if self.shape else 1


@dataclass(frozen=True, slots=True)
class FirstRows:
    """First rows of the first columns of a view, with a word in place of each secret."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
