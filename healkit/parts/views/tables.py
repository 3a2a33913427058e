"""Tables of the frames and arrays that are kept."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, Table, UniqueConstraint
from sqlmodel import Field

from healkit.core.store.models import TableBase, json_column, table_of, time_column


class DataViewRow(TableBase, table=True):
    """Name of a frame or an array that is kept in a file, which is written once and identified by its SHA-256.

    Several names may share a file. `named` is true for a name that a user gave, which is never evicted; other names are
    made from the digest.
    """

    __tablename__ = "dataview"
    __table_args__ = (
        UniqueConstraint("view_name", name="uq_dataview_name"),
        Index("ix_dataview_sha256", "sha256"),
    )

    id: int | None = Field(default=None, primary_key=True)
    view_name: str
    sha256: str = Field(max_length=64)
    kind: str = Field(max_length=32)
    shape: list[int] = json_column()
    columns: list[Any] = json_column()
    row_count: int = Field(sa_type=BigInteger)
    file_name: str
    size_bytes: int = Field(sa_type=BigInteger)
    created_by: str
    created_at: datetime = time_column()
    named: bool
    evicted_at: datetime | None = time_column(nullable=True)


class DataViewUse(TableBase, table=True):
    """Preview in the record of an execution, and the data that it stands for.

    `side` is `arguments` or `result`; `number` counts the previews there, from 0.
    """

    __tablename__ = "dataviewuse"
    __table_args__ = (Index("ix_dataviewuse_sha256", "sha256"),)

    trace_id: str = Field(primary_key=True, max_length=36)
    side: str = Field(primary_key=True, max_length=16)
    number: int = Field(primary_key=True)
    sha256: str = Field(max_length=64)


VIEWS: Table = table_of(DataViewRow)
USES: Table = table_of(DataViewUse)
