"""SQL tools: one SELECT, on a read-only connection.

There are two independent checks. `check_sql` reads the syntax tree when the tool is saved, so that its author is
informed at once. `run_sql` does not rely on it: SQLite is opened read-only, with an authorizer that only allows reading
tables; PostgreSQL runs in a READ ONLY transaction. Values are only passed as bound parameters. The row limit is
enforced by fetching one row more, never by rewriting the text.

healkit's own tables are beside the user's. A statement cannot read them, unless its tool may read the log: then
`executionlog` is a view of one persona's rows. SQLite's authorizer enforces this; on PostgreSQL, the syntax tree is
checked.
"""

from __future__ import annotations

import logging
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from healkit.core.contracts.failure import KNOWN_MAX, NEAR_MAX
from healkit.core.store.locations import CONNECT_TIMEOUT_S, server_engine, sqlite_path, sqlite_uri
from healkit.errors import HealkitError, SqlNotAllowed, near_misses
from healkit.plain_text import shown_url

if TYPE_CHECKING:
    from sqlalchemy import Engine

#: Maximum size of a text or blob that SQLite may build, and of one result, in bytes.
VALUE_MAX_BYTES = 10 * 1024 * 1024
RESULT_MAX_BYTES = 64 * 1024 * 1024

#: Functions of SQLite's shell and PostgreSQL with side effects, by name or prefix.
SIDE_EFFECTS = re.compile(
    r"load_extension|readfile|writefile|edit$|fts3_tokenizer|pragma_|zipfile|fsdir$|lsdir$"
    r"|pg_(?!typeof|size_pretty|get_)|lo_|dblink|nextval|setval|set_config|txid_current$"
    r"|(query|table|cursor|database|schema)_to_xml|ts_stat$|ts_rewrite$|crosstab|connectby|xpath_table",
    re.IGNORECASE,
)

#: Tables that are functions, or the raw pages of the file.
NO_TABLES = re.compile(r"(pragma_\w+|sqlite_dbpage|fsdir|lsdir|zipfile)$", re.IGNORECASE)

#: healkit's own tables, and the tables in which SQLite and PostgreSQL keep samples of their contents.
OWN_TABLES = re.compile(
    r"(codevault|toolregistry|toolchange|revision|patchrequest|failuregroup|collectedtrace|hostheartbeat|healkit_version"
    r"|learningstate|learned(value|trace)|prioritycount|tool(node|edge|sequence|word)|fixmemory"
    r"|traceaudit(entry|chain)|dataview(use)?|execution(log|call|day|decision|trace)(_\w+)?|sqlite_stat\d|pg_stat\w*)",
    re.IGNORECASE,
)
#: Name that a tool's `calls` have to allow for its statement to read the log.
READ_LOG = "healkit.sql"

#: A temporary view hides a table of its name until the connection ends. No database binds values in a view.
_LOG_VIEW = (
    "CREATE TEMP VIEW {view} AS SELECT * FROM {log} WHERE persona = {persona}"
    " AND origin NOT IN ('trial', 'search')"
)
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_SQLGLOT_NAMES = {"postgresql": "postgres"}


class SqlTimeout(HealkitError):
    """Raised if the statement is still running at its time limit."""

    code = "TOOL_TIMEOUT"


class SqlFailed(HealkitError):
    """Raised if the database rejects the statement.

    If it uses an unknown table, column or function, `near` are similar names, and `known` the first existing ones.
    Columns of a similar table follow the tables.
    """

    code = "SQL_ERROR"

    def __init__(
        self, message: str, *, hint: str = "", names: tuple[list[str], list[str]] = ([], [])
    ) -> None:
        super().__init__(message, hint=hint)
        self.near, self.known = names


def check_sql(code: str, dialect: str = "sqlite") -> list[str]:
    """Return the `:name` parameters in order; raise `SqlNotAllowed` unless it is one read-only statement.

    `dialect` is SQLAlchemy's name of the backend.
    """
    import sqlglot
    from sqlglot import exp

    try:
        with _quiet():
            parsed = sqlglot.parse(code, dialect=_SQLGLOT_NAMES.get(dialect, dialect))
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        reason = str(error).replace("\x1b[4m", "").replace("\x1b[0m", "") or "it is nested too deeply"
        raise _not_allowed(f"it does not parse: {reason}") from None
    statements = [statement for statement in parsed if statement is not None]
    if len(statements) != 1:
        raise _not_allowed(f"it holds {len(statements)} statements, not one")
    (tree,) = statements
    if not isinstance(tree, exp.Query):
        raise _not_allowed(f"it is {tree.key.upper()}, and only SELECT is run")
    names: list[str] = []
    for node in tree.walk():
        _check_node(node)
        if isinstance(node, exp.Placeholder) and node.this not in names:
            names.append(node.this)
    return names


def run_sql(
    database_url: str,
    code: str,
    arguments: Mapping[str, Any],
    *,
    row_limit: int,
    timeout_s: float,
    log_of: str | None = None,
) -> dict[str, Any]:
    """Run the statement; return `columns`, `rows` (lists), `row_count`, `truncated` (more than `row_limit` rows).

    A smaller LIMIT in the query applies. log_of: The persona whose rows it may read as `executionlog`. Raises
    `SqlTimeout` and `SqlFailed`, and `SqlNotAllowed` if it reads another of healkit's own tables.
    """
    path = sqlite_path(database_url)
    if path is None:
        return _run_elsewhere(database_url, code, arguments, row_limit, timeout_s, log_of)
    authorizer = _Authorizer()
    try:
        return _run_sqlite(sqlite_uri(path, "ro"), code, arguments, row_limit, timeout_s, log_of, authorizer)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise _timed_out(timeout_s) from None
        if authorizer.denied:
            raise _own_table(authorizer.denied) from None
        names = _names(
            code, str(error), "sqlite", _schema_of_file(sqlite_uri(path, "ro")), log_of is not None
        )
        raise SqlFailed(
            f"The database rejected the statement: {error}.", hint=_hint(str(error)), names=names
        ) from None
    except OverflowError:
        raise SqlFailed("An integer argument does not fit into 64 bits.", hint="Pass it as text.") from None


#: Messages of SQLite and PostgreSQL for an unknown name.
MISSING_NAME = re.compile(
    r'no such (?P<kind>table|column|function): "?(?P<name>[\w.$]+?)"?(?=\.?\Z| - )'
    r'|\b(?P<what>relation|column|function) "?(?P<which>[\w.$]+)"?(?:\(.*?\))? does not exist'
)
_SCHEMA = "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type IN ('table', 'view')"
_SCHEMA_OF_SERVER = (
    "SELECT table_name, column_name FROM information_schema.columns"
    " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY ordinal_position"
)
_FUNCTIONS = (
    "SELECT DISTINCT '', name FROM pragma_function_list",
    "SELECT DISTINCT '', proname FROM pg_proc",
)


def _names(
    code: str, said: str, dialect: str, read: Callable[[bool], list[tuple[str, str]]], log: bool
) -> tuple[list[str], list[str]]:
    """Return names similar to the unknown one, and the first names that the database knows."""
    match = MISSING_NAME.search(said.partition("\n")[0])
    if match is None:
        return [], []
    owner, _, wanted = (match["name"] or match["which"]).rpartition(".")
    kind = match["kind"] or match["what"]
    rows = [
        (table, name)
        for table, name in read(kind == "function")
        if not OWN_TABLES.fullmatch(table) or (log and table == "executionlog")
    ]
    if kind in ("table", "relation"):
        tables = list(dict.fromkeys(table for table, _ in rows))
        similar = near_misses(wanted, tables, NEAR_MAX)
        # The columns of the likeliest table may be misspelt too.
        return similar, tables[: KNOWN_MAX // 2] + [name for table, name in rows if table in similar[:1]][
            :KNOWN_MAX
        ]
    if kind == "function":
        return near_misses(wanted, [name for _, name in rows], NEAR_MAX), []
    by_name, named = _named_in(code, dialect)
    queried_tables = {by_name.get(owner.lower(), owner.lower())} if owner else set(by_name.values())
    candidates = [name for table, name in rows if table.lower() in queried_tables] + ([] if owner else named)
    existing_names = [name for name in dict.fromkeys(candidates) if name.lower() != wanted.lower()]
    return near_misses(wanted, existing_names, NEAR_MAX), existing_names[:KNOWN_MAX]


def _named_in(code: str, dialect: str) -> tuple[dict[str, str], list[str]]:
    """Return the tables of a statement by their aliases, and the aliases of its columns."""
    import sqlglot
    from sqlglot import exp

    try:
        with _quiet():
            trees = [tree for tree in sqlglot.parse(code, dialect=dialect) if tree is not None]
    except (sqlglot.errors.SqlglotError, RecursionError):
        return {}, []
    tables = [table for tree in trees for table in tree.find_all(exp.Table)]
    named = [alias.alias for tree in trees for alias in tree.find_all(exp.Alias)]
    return {table.alias_or_name.lower(): table.name.lower() for table in tables}, named


def _schema_of_file(uri: str) -> Callable[[bool], list[tuple[str, str]]]:
    def read(functions: bool) -> list[tuple[str, str]]:
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                return connection.execute(_FUNCTIONS[0] if functions else _SCHEMA).fetchall()
        except sqlite3.Error:
            return []

    return read


def _schema_of_server(engine: Engine) -> Callable[[bool], list[tuple[str, str]]]:
    from sqlalchemy import text
    from sqlalchemy.exc import SQLAlchemyError

    def read(functions: bool) -> list[tuple[str, str]]:
        try:
            with engine.connect() as connection:
                rows = connection.execute(text(_FUNCTIONS[1] if functions else _SCHEMA_OF_SERVER))
                return [(str(table), str(name)) for table, name in rows]
        except SQLAlchemyError:
            return []

    return read


def _check_node(node: object) -> None:
    """Raise `SqlNotAllowed` for a node of the tree that does more than read."""
    from sqlglot import exp

    writing = (exp.DML, exp.DDL, exp.Command, exp.Copy, exp.Attach, exp.Detach, exp.Pragma, exp.Set)
    if isinstance(node, writing) and not isinstance(node, exp.Query):
        raise _not_allowed(f"it has {node.key.upper()} inside")
    if isinstance(node, exp.Into):
        raise _not_allowed("INTO would make a table")
    if isinstance(node, exp.Lock):
        raise _not_allowed("a locking clause (FOR UPDATE, FOR SHARE) would hold others up")
    if isinstance(node, exp.Parameter) or (
        isinstance(node, exp.Placeholder) and not str(node.this or "").isidentifier()
    ):
        raise _not_allowed(f"{node.sql()!r} is not a parameter that has a name; write :name")
    if isinstance(node, exp.Func):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        if SIDE_EFFECTS.match(name):
            raise _not_allowed(f"the function {name!r} may do more than read")
    if isinstance(node, exp.Table) and NO_TABLES.match(node.name):
        raise _not_allowed(f"{node.name!r} is not an ordinary table")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the parser from logging the message of its exception."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _not_allowed(reason: str) -> SqlNotAllowed:
    return SqlNotAllowed(
        f"This is not a SQL tool: {reason}.", hint="A SQL tool is one SELECT, with :name for each argument."
    )


def _timed_out(timeout_s: float) -> SqlTimeout:
    return SqlTimeout(
        f"The statement was still running after {timeout_s:g} s.",
        hint="Narrow it, or raise the tool's timeout_s.",
    )


def _hint(said: str) -> str:
    if "not authorized" in said or "prohibited" in said or "readonly" in said:
        return "A SQL tool may read tables, and nothing else."
    return ""


def _own_table(name: str) -> SqlNotAllowed:
    return SqlNotAllowed(
        f"This tool may not read the table {name!r}, which is healkit's own.",
        hint=f"With calls=['{READ_LOG}'] it may read `executionlog`, its persona's rows; "
        "hk.log and hk.executions() show you everything.",
    )


class _Authorizer:
    """Authorizer of a statement on SQLite: it may read tables, but healkit's own only through `view`.

    `denied` is the own table that it tried to read.
    """

    def __init__(self) -> None:
        # SQLite reports a view or a subquery as the source of a read; no statement can know this name.
        self.view = f"log_{secrets.token_hex(16)}"
        self.denied = ""

    def show_log(self, connection: sqlite3.Connection, persona: str) -> None:
        """Put a view of that persona's rows in place of the log."""
        (quoted,) = connection.execute("SELECT quote(?)", (persona,)).fetchone()
        connection.execute(_LOG_VIEW.format(view=self.view, log="main.executionlog", persona=quoted))
        connection.execute(f"CREATE TEMP VIEW executionlog AS SELECT * FROM {self.view}")  # noqa: S608 - our name

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, source: str | None
    ) -> int:
        """Allow only reads; called by SQLite for each action of a statement while it is compiled."""
        if action not in _ALLOWED:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and second and SIDE_EFFECTS.match(second):
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_READ and first:
            if NO_TABLES.match(first):
                return sqlite3.SQLITE_DENY
            if OWN_TABLES.fullmatch(first) and database != "temp" and source != self.view:
                self.denied = first
                return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK


def _run_sqlite(
    uri: str,
    code: str,
    arguments: Mapping[str, Any],
    row_limit: int,
    timeout_s: float,
    log_of: str | None,
    authorizer: _Authorizer,
) -> dict[str, Any]:
    give_up = time.monotonic() + timeout_s
    with closing(
        sqlite3.connect(uri, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    ) as connection:
        if log_of is not None:
            authorizer.show_log(connection, log_of)
        connection.execute("PRAGMA query_only = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_MAX_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(authorizer)
        # The handler runs between instructions of SQLite's machine; the timer covers the rest.
        connection.set_progress_handler(lambda: time.monotonic() > give_up, 1000)
        timer = threading.Timer(timeout_s, connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            cursor = connection.execute(code, dict(arguments))
            return _collect(cursor.fetchone, [column[0] for column in cursor.description or ()], row_limit)
        finally:
            timer.cancel()
            timer.join()  # it must not interrupt a connection that is already closed


def _run_elsewhere(
    url: str, code: str, arguments: Mapping[str, Any], row_limit: int, timeout_s: float, log_of: str | None
) -> dict[str, Any]:
    """Run the statement on a server, in one READ ONLY transaction with its own statement timeout."""
    reads_log = _check_own_tables(code, log_of is not None)
    from sqlalchemy import text
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    engine = server_engine(url, min(timeout_s, CONNECT_TIMEOUT_S), poolclass=NullPool)
    connected = False
    try:
        with engine.connect() as connection, connection.begin():
            connected = True
            if reads_log:
                quoted = "'" + str(log_of).replace("'", "''") + "'"
                view = _LOG_VIEW.format(view="executionlog", log="executionlog", persona=quoted)
                connection.execute(text(_colons_escaped(view)))
            connection.execute(text("SET TRANSACTION READ ONLY"))
            connection.execute(text(f"SET LOCAL statement_timeout = {max(1, int(timeout_s * 1000))}"))
            result = connection.execution_options(stream_results=True).execute(
                text(_colons_escaped(code)), dict(arguments)
            )
            return _collect(result.fetchone, list(result.keys()), row_limit)
    except SQLAlchemyError as error:
        original = getattr(error, "orig", None) or error
        if getattr(original, "sqlstate", "") == "57014":
            raise _timed_out(timeout_s) from None
        message = shown_url(str(original).strip())
        if not connected:
            raise SqlFailed(
                f"The database of this tool cannot be reached: {message}.", hint="Is its server running?"
            ) from None
        names = _names(code, message, "postgres", _schema_of_server(engine), log_of is not None)
        raise SqlFailed(f"The database rejected the statement: {message}.", names=names) from None
    finally:
        engine.dispose()


def _check_own_tables(code: str, may_read_log: bool) -> bool:
    """Return whether the statement reads the log; raise `SqlNotAllowed` for an own table that it may not read."""
    if not OWN_TABLES.search(code) and not re.search(r'U&"', code, re.IGNORECASE):
        return False
    import sqlglot
    from sqlglot import exp

    try:
        with _quiet():
            trees = [tree for tree in sqlglot.parse(code, dialect="postgres") if tree is not None]
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise _not_allowed("it does not parse") from None
    if re.search(r'U&"', code, re.IGNORECASE) or not all(isinstance(tree, exp.Query) for tree in trees):
        raise _not_allowed("a name is written with escapes, or it is more than a query")
    named = [
        table for tree in trees for table in tree.find_all(exp.Table) if OWN_TABLES.fullmatch(table.name)
    ]
    for table in named:
        if not may_read_log or table.name.lower() != "executionlog" or table.db:
            raise _own_table(table.sql(dialect="postgres"))
    return bool(named)


def _colons_escaped(code: str) -> str:
    """Escape colons in literals, names and comments, which would be read as parameters."""
    return re.sub(
        r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$",
        lambda match: match[0].replace("\\", "\\\\").replace(":", r"\:") if ":" in match[0] else match[0],
        code,
        flags=re.DOTALL,
    )


def _collect(fetch: Callable[[], Any], columns: list[str], row_limit: int) -> dict[str, Any]:
    """Collect at most `row_limit` rows, and whether there was one more; raise `SqlFailed` above the size limit."""
    rows: list[list[Any]] = []
    size_bytes, truncated = 0, False
    while (row := fetch()) is not None:
        if len(rows) == row_limit:
            truncated = True
            break
        rows.append(list(row))
        size_bytes += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size_bytes > RESULT_MAX_BYTES:
            raise SqlFailed(
                f"The result is over {RESULT_MAX_BYTES:,} bytes.", hint="Select fewer columns or rows."
            )
    return {"columns": columns, "rows": rows, "row_count": len(rows), "truncated": truncated}
