"""The root of the tables, and the kinds of column they have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, Table, Text, TypeDecorator
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time in UTC; SQLite stores no offset, so it is taken off there and put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive time, which nobody could interpret later."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; healkit stores aware times only")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The same moment, in UTC whatever the server's own zone is."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def json_column(*, nullable: bool = False) -> Any:
    """JSON; None is SQL's own NULL."""
    return Field(default=None if nullable else ..., sa_type=JSON(none_as_null=True), nullable=nullable)


def time_column(*, nullable: bool = False) -> Any:
    """A moment."""
    return Field(default=None if nullable else ..., sa_type=UtcDateTime, nullable=nullable)


def text_column(*, nullable: bool = False) -> Any:
    """A text of any length."""
    return Field(default=None if nullable else "", sa_type=Text, nullable=nullable)


class Base(SQLModel, registry=registry()):
    """The root of healkit's tables, apart from a user's own SQLModel classes, whose names may be the same."""


def table_of(model: type[SQLModel]) -> Table:
    """A model's table, for statements of SQLAlchemy Core."""
    table: Table = model.__table__  # type: ignore[attr-defined]  # SQLModel makes it, and its type does not say so
    return table
