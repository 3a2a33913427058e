"""Statements of the execution path fit the tables."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import JSON, Boolean, Table

from healkit.contracts.execution import TRIED_ORIGINS
from healkit.errors import ConfigError
from healkit.store import statements
from healkit.store.database import Database
from healkit.store.models import (
    CALLS,
    DECISIONS,
    LOG,
    REVISIONS,
    TOOLS,
    TRACES,
    CodeVault,
    UtcDateTime,
    table_of,
)

LOG_14 = pytest.mark.requirement("LOG-14")
ALL = {name: text for name, text in vars(statements).items() if name.isupper() and isinstance(text, str)}
#: What `SELECT` returns, by the statement: the whole log, or the columns of three tables.
LOOKED_UP = re.findall(r"(tool|revision|code)\.(\w+)", statements.LOOKUP.split("FROM")[0])
TABLES = {"tool": TOOLS, "revision": REVISIONS, "code": table_of(CodeVault)}


def names_of(table: Table) -> set[str]:
    return {column.name for column in table.columns if column.name != "id"}


@LOG_14
def test_every_column_of_a_table_is_written() -> None:
    assert set(statements.STARTED) | set(statements.FINISHED) == names_of(LOG)
    assert set(statements.CALLED) == names_of(CALLS)
    assert set(statements.DECIDED) == names_of(DECISIONS)
    left = names_of(TRACES) - set(statements.TRACED)
    assert all(TRACES.c[name].nullable for name in left)


@LOG_14
def test_the_columns_that_sqlite_stores_in_another_form_are_known_by_name() -> None:
    returned = [*LOG.columns, *(TABLES[table].c[name] for table, name in LOOKED_UP)]
    kinds = ((UtcDateTime, statements.TIMES), (JSON, statements.JSONS), (Boolean, statements.BOOLS))
    for kind, names in kinds:
        assert {column.name for column in returned if isinstance(column.type, kind)} == names
    for column in returned:
        known = {name for kind, names in kinds if not isinstance(column.type, kind) for name in names}
        assert column.name not in known, "two columns of one name, of different kinds"


@LOG_14
@pytest.mark.parametrize("name", sorted(ALL))
def test_sqlite_compiles_each_statement(tmp_path: Path, name: str) -> None:
    database = Database(tmp_path / "healkit.db")
    values = dict.fromkeys(re.findall(r":(\w+)", ALL[name]))
    database.fetch(f"EXPLAIN {ALL[name]}", **values)


def test_each_parameter_that_is_a_time_is_written_as_one() -> None:
    """SQLite's driver would write it in a form of its own."""
    tables = (LOG, CALLS, DECISIONS, TRACES, TOOLS, REVISIONS)
    columns = [column for table in tables for column in table.columns]
    times = {column.name for column in columns if isinstance(column.type, UtcDateTime)} | {"time", "ahead"}
    for text in ALL.values():
        statement = statements.prepared("sqlite", text)
        assert set(statement.times) == times & set(statement.names)


def test_executions_that_only_try_code_out_are_left_out_by_all_their_origins() -> None:
    for origin in TRIED_ORIGINS:
        assert f"origin <> '{origin}'" in statements.NEWEST
        assert f"origin = '{origin}'" in statements.TRIED_SINCE
        assert f"'{origin}'" in statements.FINISH


def test_a_statement_takes_its_parameters_as_the_driver_does() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    sqlite = statements.prepared("sqlite", statements.TRIED_SINCE)
    assert "(timestamp, id) > (?, ?) LIMIT ?" in sqlite.sql
    assert sqlite.bind({"limit": 5, "end": 7, "time": noon}) == ["2026-01-01 10:00:00.000000", 7, 5]
    postgresql = statements.prepared("postgresql", statements.TRIED_SINCE)
    assert "(timestamp, id) > (%(time)s, %(end)s) LIMIT %(limit)s" in postgresql.sql
    assert postgresql.bind({"time": noon}) == {"time": noon}
    with pytest.raises(ValueError, match="no time zone"):
        sqlite.bind({"limit": 5, "end": 7, "time": noon.replace(tzinfo=None)})
    with pytest.raises(ConfigError, match="keeps no log on 'mysql'"):
        statements.prepared("mysql", statements.FINISH)
