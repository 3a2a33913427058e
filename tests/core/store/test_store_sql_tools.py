"""SQL tools: refused when saved, and restricted when run."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from trusted import trusted_copy
from waiting import WITHIN_S

from healkit.core.store.sql_tools import SqlFailed, SqlTimeout, check_sql, run_sql
from healkit.errors import SqlNotAllowed

pytestmark = pytest.mark.requirement("VAULT-6")

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    """Make a small database of another program."""
    path = tmp_path / "sales.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE sales (region TEXT, amount INTEGER)")
        connection.executemany("INSERT INTO sales VALUES (?, ?)", [("north", n) for n in range(100)])
        connection.commit()
    return path


def run(
    path: Path, code: str, row_limit: int = 10, timeout_s: float = 5.0, **arguments: Any
) -> dict[str, Any]:
    return run_sql(f"sqlite:///{path}", code, arguments, row_limit=row_limit, timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("SELECT * FROM t WHERE a = :a AND b = :b OR c = :a", ["a", "b"]),
        ("WITH x AS (SELECT 1) SELECT * FROM x UNION SELECT 2;", []),
        ("SELECT ':no' AS a, \"b:c\", 1 -- :nor_this\n FROM t", []),
        ("SELECT replace(edit, 'a', :to) FROM editions", ["to"]),
    ],
)
def test_one_reading_statement_is_allowed(code: str, names: list[str]) -> None:
    assert check_sql(code, "sqlite") == names


@pytest.mark.parametrize(
    "code",
    [
        "", "SELECT 1; SELECT 2", "SELECT 1; DROP TABLE t", "INSERT INTO t SELECT 1", "REPLACE INTO t VALUES (1)",
        "UPDATE t SET a = 1", "DELETE FROM t", "CREATE TABLE x AS SELECT 1", "PRAGMA writable_schema = 1",
        "ATTACH '/etc/passwd' AS x", "VACUUM INTO '/tmp/x'", "EXPLAIN SELECT 1", "BEGIN",
        "SELECT load_extension('x')", "SELECT writefile('/tmp/x', 'y')", "SELECT readfile('/etc/passwd')",
        "SELECT * FROM pragma_table_info('t')", "SELECT * FROM sqlite_dbpage", "SELECT a FROM t WHERE b = ?",
        "SELECT a FROM t WHERE b = @b", "SELEC 1", "(" * 5000,
    ],
)  # fmt: skip
def test_other_statements_are_refused_for_sqlite(code: str) -> None:
    with pytest.raises(SqlNotAllowed, match="not a SQL tool"):
        check_sql(code, "sqlite")


@pytest.mark.parametrize(
    "code",
    [
        "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", "SELECT 1 INTO x", "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t FOR SHARE", "COPY t TO PROGRAM 'sh'", "SELECT pg_sleep(10)",
        "SELECT pg_read_file('/etc/passwd')", "SELECT * FROM dblink('a', 'b') AS t(x int)",
        "SELECT lo_import('/etc/passwd')", "SELECT nextval('s')", "SELECT set_config('a', 'b', false)", "CALL f()",
        "DO $$ BEGIN END $$", "SELECT a FROM t WHERE b = $1",
    ],
)  # fmt: skip
def test_other_statements_are_refused_for_postgresql(code: str) -> None:
    with pytest.raises(SqlNotAllowed):
        check_sql(code, "postgresql")


def test_rows_come_back_with_their_columns_up_to_the_limit(sales: Path) -> None:
    result = run(sales, "SELECT region, amount FROM sales WHERE amount >= :least ORDER BY amount", least=3)
    assert result["columns"] == ["region", "amount"]
    assert result["rows"][0] == ["north", 3]
    assert (result["row_count"], result["truncated"]) == (10, True)


@pytest.mark.parametrize(("limit", "count", "truncated"), [(5, 5, False), (10, 10, False), (50, 10, True)])
def test_the_smaller_limit_counts(sales: Path, limit: int, count: int, truncated: bool) -> None:
    result = run(sales, f"SELECT amount FROM sales LIMIT {limit}")
    assert (result["row_count"], result["truncated"]) == (count, truncated)


def test_values_are_never_read_as_sql(sales: Path) -> None:
    assert (
        run(sales, "SELECT * FROM sales WHERE region = :r", r="' OR 1=1; DROP TABLE sales --")["rows"] == []
    )
    assert run(sales, "SELECT :a, :b, :c", a=None, b=True, c=1.5)["rows"] == [[None, 1, 1.5]]


@pytest.mark.parametrize(
    "code",
    [
        "INSERT INTO sales VALUES ('x', 1)", "DELETE FROM sales", "CREATE TABLE x (a)", "CREATE TEMP TABLE x (a)",
        "ATTACH '/tmp/other.db' AS other", "PRAGMA user_version = 5", "PRAGMA query_only = OFF",
        "SELECT * FROM pragma_table_info('sales')", "SELECT load_extension('x')", "VACUUM INTO '/tmp/never.db'",
        "SELECT 1; SELECT 2",
    ],
)  # fmt: skip
def test_the_connection_itself_cannot_write(sales: Path, code: str) -> None:
    before = sales.read_bytes()
    with pytest.raises(SqlFailed):
        run(sales, code)
    assert sales.read_bytes() == before
    assert not Path("/tmp/never.db").exists()
    assert not Path("/tmp/other.db").exists()


@pytest.mark.parametrize(
    "code", [ENDLESS, "SELECT count(*) FROM sales a, sales b, sales c, sales d, sales e, sales f"]
)
def test_an_endless_statement_times_out(sales: Path, code: str) -> None:
    with pytest.raises(SqlTimeout, match=r"0\.2 s"):
        run(sales, code, timeout_s=0.2)


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_waited_for_no_longer_than_the_tool() -> None:
    """R10: a SQL tool waited without limit for a server that takes a connection and then says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql+psycopg://u:hush@127.0.0.1:{silent.getsockname()[1]}/d"
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(run_sql, url, "SELECT 1", {}, row_limit=5, timeout_s=1.0)
            try:
                with pytest.raises(SqlFailed, match="cannot be reached") as caught:
                    asked.result(WITHIN_S)
            finally:
                silent.close()  # lets go of what still waits for it
    assert "hush" not in str(caught.value)


def test_a_result_too_large_to_hold_is_refused(sales: Path) -> None:
    with pytest.raises(SqlFailed, match="too big"):
        run(sales, "SELECT zeroblob(1000000000)")
    with pytest.raises(SqlFailed, match="bytes"):
        run(sales, "SELECT zeroblob(9000000) FROM sales", row_limit=100)


@pytest.mark.parametrize(
    ("code", "arguments", "said"),
    [
        ("SELECT * FROM nowhere", {}, "no such table: nowhere"),
        ("SELECT :a", {}, ":a"),
        ("SELECT :a", {"a": [1]}, "list"),
        ("SELECT :a", {"a": 2**70}, "64 bits"),
    ],
)
def test_a_refused_statement_raises(sales: Path, code: str, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(SqlFailed, match=said):
        run(sales, code, **arguments)


@pytest.mark.parametrize(
    ("code", "near", "known"),
    [
        ("SELECT amout FROM sales", ["amount"], ["region", "amount"]),
        ("SELECT s.regoin FROM sales s", ["region"], ["region", "amount"]),
        ("SELECT count(*) FROM slaes", ["sales"], ["sales", "region", "amount"]),
        ("SELECT lenght(region) FROM sales", ["length"], []),
        ("SELECT sum(amount) AS total FROM sales HAVING totl > 1", ["total"], ["region", "amount", "total"]),
        ("SELECT zzyzx FROM sales", [], ["region", "amount"]),
        ("SELECT * FROM executionlgo", [], ["sales"]),
        ("SELECT amount FROM sales WHERE", [], []),
    ],
)
def test_a_name_that_the_database_lacks_comes_with_those_that_it_has(
    sales: Path, code: str, near: list[str], known: list[str]
) -> None:
    with contextlib.closing(sqlite3.connect(sales)) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS executionlog (id INTEGER)"
        )  # healkit's own: never named
    with pytest.raises(SqlFailed) as raised:
        run(sales, code)
    assert (raised.value.near[:1], raised.value.known) == (near, known)


@pytest.mark.requirement("SAFE-1")
@pytest.mark.parametrize("log_of", [None, "default"], ids=["not granted", "granted"])
def test_no_statement_reads_a_table_of_healkits_own(
    empty_database: Path, tmp_path: Path, log_of: str
) -> None:
    """S1: a SQL tool without grants read every table of the log and the vault, whatever it called them."""
    path = Path(trusted_copy(empty_database, tmp_path / "own.db"))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        connection.execute("CREATE VIEW behind AS SELECT * FROM executionlog")
        connection.execute("ANALYZE")
        connection.commit()
    assert {"executionlog", "codevault", "toolregistry", "executioncall", "patchrequest"} <= set(tables)
    sources = [f"{schema}{table}" for table in [*tables, "sqlite_stat1"] for schema in ("", "main.")]
    sources += [
        "behind",
        "(WITH executionlog AS (SELECT * FROM main.executionlog) SELECT * FROM executionlog)",
    ]
    sources += ["(SELECT * FROM main.executionlog) executionlog", "[executionLOG] x, main.'executionlog'"]
    for source in sources:
        if log_of is not None and source == "executionlog":
            continue
        code = f"SELECT count(*) FROM {source}"
        with pytest.raises((SqlNotAllowed, SqlFailed), match=r"own|authorized|constructor"):
            run_sql(f"sqlite:///{path}", code, {}, row_limit=9, timeout_s=5, log_of=log_of)
