"""The tables that triggers keep beside the log.

Migration 0002 says how; nothing else ever writes them.
"""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import BigInteger, Index, Table
from sqlalchemy.orm import Session
from sqlmodel import Field

from healkit.store.columns import Base, UtcDateTime, table_of


class ExecutionDay(Base, table=True):
    """One tool's finished runs of one day (UTC), in one class of durations; kept by triggers on `executionlog`.

    `revision` is 0 for calls that were refused before one was known, -1 for runs that only tried code out.
    `within_ms` is the upper end of the class (1, 2, 5, 10 … 1,000,000,000), 0 for runs without a duration,
    2,000,000,000 for longer ones. `total_us` is the sum of their durations in whole µs, so that what is taken away
    again leaves no rounding behind.
    """

    __tablename__ = "executionday"
    __table_args__ = ({"sqlite_with_rowid": False},)

    tool_name: str = Field(primary_key=True)
    day: date = Field(primary_key=True)
    persona: str = Field(primary_key=True)
    revision: int = Field(primary_key=True)
    within_ms: int = Field(primary_key=True)
    runs: int
    failures: int
    total_us: int = Field(sa_type=BigInteger)


class FailureGroup(Base, table=True):
    """The failures of one fingerprint, tool and persona that are on record; kept by triggers on `executionlog`."""

    __tablename__ = "failuregroup"
    __table_args__ = (Index("ix_failuregroup_seen", "last_seen"), {"sqlite_with_rowid": False})

    fingerprint: str = Field(primary_key=True)
    tool_name: str = Field(primary_key=True)
    persona: str = Field(primary_key=True)
    failures: int
    first_seen: datetime = Field(sa_type=UtcDateTime)
    first_log_id: int
    last_seen: datetime = Field(sa_type=UtcDateTime)
    last_log_id: int


DAYS: Table = table_of(ExecutionDay)
GROUPS: Table = table_of(FailureGroup)


def hold(session: Session) -> None:
    """Keep the tallies for this transaction, which changes many rows of the log; called before it does.

    On PostgreSQL the triggers take the locks of many days and groups, in an order that another writer's need not be,
    and the two would wait for each other. SQLite has one write lock for everything.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.connection().exec_driver_sql(
            "LOCK TABLE executionday, failuregroup IN SHARE ROW EXCLUSIVE MODE"
        )
