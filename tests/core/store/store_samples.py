"""Sample records, and ways to break a database."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from side_by_side import Meet, at_once
from sqlalchemy import event

from healkit.core.contracts.execution import (
    CallRecord,
    Finished,
    HostIdentity,
    Started,
    new_trace_id,
    utc_now,
)
from healkit.core.contracts.failure import Failure, Frame
from healkit.core.host import host_identity
from healkit.core.pysource.tracebacks import fingerprint
from healkit.core.store.database import Database
from healkit.core.store.log_writer import LogWriter

NOBODY = 65534


def started(tool: str = "fibonacci", **changes: Any) -> Started:
    """Make the record of an execution that is about to run."""
    now = changes.pop("timestamp", None) or utc_now()
    values: dict[str, Any] = {
        "trace_id": new_trace_id(), "timestamp": now, "tool_name": tool, "persona": "default", "arguments": '{"n":10}',
        "origin": "python", "host": host_identity(), "deadline": now + timedelta(seconds=30), "revision": 1,
        "isolation": "namespaces",
    }  # fmt: skip
    return Started(**{**values, **changes})


def succeeded(begun: Started, result: str = "55") -> Finished:
    """Make the record of its success."""
    return Finished(begun.trace_id, utc_now(), 12.5, result_summary=result)


def failed(begun: Started, line: str = "return 1 / 0", ename: str = "ZeroDivisionError") -> Finished:
    """Make the record of its failure, at that line of the tool."""
    frames = [Frame("<fibonacci@1>", 2, "fibonacci", line, in_tool=True)]
    failure = Failure(
        "TOOL_EXCEPTION", ename, "division by zero", f"Traceback …\n    {line}\n{ename}: no", frames
    )
    return Finished(begun.trace_id, utc_now(), 3.5, failure=failure, fingerprint=fingerprint(failure))


def recorded(
    writer: LogWriter, end: Callable[[Started], Finished] = failed, tool: str = "fibonacci", **changes: Any
) -> int:
    """Write a whole execution that ends so; return its row's id."""
    begun = started(tool, **changes)
    return writer.insert_finished(begun, end(begun))


def call(begun: Started, task: int = 1, **changes: Any) -> CallRecord:
    """Make the record of a call that it made through the bridge."""
    values = {"server": "vault", "tool": "square", "arguments": '{"x":2}', "started_at": utc_now(), **changes}
    return CallRecord(begun.trace_id, f"t{task}", **values)


def asked_of(database: Database, ask: Callable[[], object]) -> list[tuple[str, Any, list[str]]]:
    """Return the queries that `ask` sends to SQLite: each with its values, and what SQLite means to do for it."""
    asked: list[tuple[str, Any]] = []

    def note(_c: Any, _k: Any, sql: str, values: Any, *_: Any) -> None:
        asked.append((sql, values))

    event.listen(database.engine, "before_cursor_execute", note)
    ask()
    event.remove(database.engine, "before_cursor_execute", note)
    with database.engine.connect() as connection:
        return [
            (sql, values, [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)])
            for sql, values in asked
            if sql.lstrip().startswith(("SELECT", "WITH"))
        ]


def log_rows(where: Path | str | Database) -> list[dict[str, Any]]:
    """Read the log as another program does: of a file, or of a database wherever it is."""
    statement = "SELECT * FROM executionlog ORDER BY id"
    where = where.url if isinstance(where, Database) else str(where)
    if where.startswith("postgresql"):
        with psycopg.connect(where.replace("+psycopg", ""), row_factory=dict_row) as server:
            return list(server.execute(statement))
    path = where.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(statement)]


def _identity(meet: Meet) -> HostIdentity:
    meet()
    return host_identity()


def dead_host() -> HostIdentity:
    """Return the identity of a real process that has ended."""
    return at_once(_identity, ())[0]


@contextlib.contextmanager
def locked_by_another_process(where: Path | str) -> Iterator[subprocess.Popen[bytes]]:
    """Keep others from writing the log, in another process until the block ends (or its stdin is closed).

    On SQLite that is the write lock, on PostgreSQL a lock of the log's tables; reading goes on.
    """
    connect, lock = "sqlite3", "BEGIN IMMEDIATE"
    if str(where).startswith("postgresql"):
        tables = "executionlog, executioncall, executiondecision, executiontrace"
        connect, lock = "psycopg", f"LOCK TABLE {tables} IN EXCLUSIVE MODE"
    options = "timeout=5, isolation_level=None" if connect == "sqlite3" else ""
    program = (
        f"import {connect}, sys; c = {connect}.connect(sys.argv[1], {options});"
        f"c.execute('{lock}'); print('held', flush=True); sys.stdin.read(); c.execute('ROLLBACK'); c.close()"
    )
    command = [sys.executable, "-c", program, str(where).removeprefix("sqlite:///").replace("+psycopg", "")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(timeout=10)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


@contextlib.contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Run the block as an ordinary user, whom file permissions bind; root ignores them."""
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(NOBODY)
    except PermissionError:
        pytest.skip("root that may not become another user")
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def tiny_disk(folder: Path, size_kib: int = 512) -> Iterator[Path]:
    """Mount a disk of that size on the folder; skip where the system refuses."""
    folder.mkdir(exist_ok=True)
    if os.geteuid() != 0:
        pytest.skip("only root mounts")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Fill that disk; return the file to remove."""
    file = folder / "filler"
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as out:
        while out.write(b"x" * 4096):
            pass
    return file


def moment(text: str) -> datetime:
    """Parse an aware time."""
    return datetime.fromisoformat(text)
