"""Kinds of column, and the root of the tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, Index, Table, Text, TypeDecorator, text
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel


class UtcDateTime(TypeDecorator[datetime]):
    """Aware time in UTC; SQLite stores no offset, so it is taken off there and put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC; raise `ValueError` for a naive time, which has no defined meaning later."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; healkit stores aware times only")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the same moment in UTC, whatever the server's own zone is."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class TableBase(SQLModel, registry=registry()):
    """Root of healkit's tables, apart from a user's own SQLModel classes, whose names may be the same."""


def json_column(*, nullable: bool = False) -> Any:
    """Make a column of JSON, in which None is SQL's own NULL."""
    return Field(default=None if nullable else ..., sa_type=JSON(none_as_null=True), nullable=nullable)


def time_column(*, nullable: bool = False) -> Any:
    """Make a column of moments."""
    return Field(default=None if nullable else ..., sa_type=UtcDateTime, nullable=nullable)


def text_column(*, nullable: bool = False) -> Any:
    """Make a column of texts of any length."""
    return Field(default=None if nullable else "", sa_type=Text, nullable=nullable)


def partial_index(name: str, *columns: str, where: str) -> Index:
    """Make an index of the rows that a condition holds for, on either kind of database."""
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


def table_of(model: type[SQLModel]) -> Table:
    """Return a model's table, for statements of SQLAlchemy Core."""
    table: Table = model.__table__  # type: ignore[attr-defined]  # SQLModel makes it, and its type does not say so
    return table
