"""SQL of the execution path, run without SQLAlchemy.

The first execution of a process has to commit its RUNNING row within 100 ms; importing SQLAlchemy takes longer. On an
open connection, SQLAlchemy Core also costs more than the statement itself. So the dozen statements of an execution are
text here, in the SQL that SQLite and PostgreSQL share. A test compares their columns with the tables.

Each statement may be repeated for the same record, so that a spool file can be replayed. Values that are already JSON
text (arguments, failures) are stored unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from healkit.core.contracts.execution import (
    CALL_MAX_CHARS,
    CallRecord,
    DecisionRecord,
    Finished,
    Started,
    StoredTrace,
)
from healkit.core.wire.record_text import shortened
from healkit.errors import ConfigError, DatabaseCorrupt
from healkit.plain_text import one_line

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPICursor


STARTED = (
    "trace_id", "timestamp", "tool_name", "persona", "arguments", "status", "parent_trace_id", "origin",
    "revision", "code_hash", "isolation", "grants", "deadline", "last_output", "host", "run_id", "client",
)  # fmt: skip
FINISHED = (
    "status", "result_summary", "error_traceback", "error_code", "ename", "evalue", "failure", "fingerprint",
    "finished_at", "duration_ms", "last_output",
)  # fmt: skip
CALLED = (
    "trace_id", "task_id", "server", "tool", "arguments", "started_at", "success", "result_summary",
    "error_code", "error", "duration_ms", "answered_from",
)  # fmt: skip
DECIDED = ("trace_id", "number", "after_task", "node", "outcome", "condition", "decided_at")
TRACED = ("trace_id", "parent_trace_id", "wire", "state", "attempts", "reason", "created_at", "queued_at")

#: Columns that SQLite returns as text or numbers; PostgreSQL's driver decodes its own.
TIMES = {"timestamp", "finished_at", "deadline"}
JSONS = {"arguments", "grants", "failure", "host", "input_schema", "examples", "flags"}
BOOLS = {"draft"}

_PARAMETER = re.compile(r":(\w+)")
#: Parameters that are times: columns, and bounds of them.
_TIME_PARAMETERS = TIMES | {"started_at", "decided_at", "created_at", "queued_at", "time"}
_encode = msgspec.json.Encoder().encode


def _insert(table: str, columns: tuple[str, ...]) -> str:
    values = ", ".join(f":{name}" for name in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608 - our names


def _excluded(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name} = excluded.{name}" for name in columns)


# A replay must find its row and return its id, and must not turn a finished row into a running one. A row
# that was started before its tier was known is started again with it.
START = f"""{_insert("executionlog", STARTED)}
    ON CONFLICT (trace_id) DO UPDATE SET isolation = coalesce(excluded.isolation, executionlog.isolation)
    RETURNING id"""

# The same, but at the time of the newest row if the clock is behind it: rows of one time are ordered by id.
# In one statement, no other writer can come in between.
START_IN_ORDER = START.replace(
    ":timestamp",
    """coalesce(
        (SELECT max(timestamp) FROM executionlog WHERE timestamp > :timestamp), :timestamp
    )""",
).replace("RETURNING id", "RETURNING id, nullif(timestamp, :timestamp)")
MOVED = "UPDATE executionlog SET host = :host WHERE trace_id = :trace_id"

# Code on trial has no fingerprint, because groups of failures do not count it.
_fingerprint = "CASE WHEN {origin} IN ('trial', 'search') THEN NULL ELSE :fingerprint END"

_WHOLE = _insert("executionlog", tuple(dict.fromkeys(STARTED + FINISHED)))
WHOLE = f"""{_WHOLE.replace(":fingerprint", _fingerprint.format(origin="CAST(:origin AS varchar)"))}
    ON CONFLICT (trace_id) DO UPDATE SET {_excluded(FINISHED)}
    RETURNING id"""

_SET = {"fingerprint": _fingerprint.format(origin="origin")}
_FINISH = "UPDATE executionlog SET " + ", ".join(  # noqa: S608 - our names
    f"{name} = {_SET.get(name, f':{name}')}" for name in FINISHED
)
# The same for a success, which has no failure.
_SUCCESS = ("result_summary", "finished_at", "duration_ms", "last_output")
SUCCEED = (
    "UPDATE executionlog SET "  # noqa: S608 - our names
    + ", ".join(
        f"{name} = {f':{name}' if name in _SUCCESS else 'NULL'}" for name in FINISHED if name != "status"
    )
    + ", status = 'SUCCESS' WHERE trace_id = :trace_id RETURNING id"
)
FINISH = f"{_FINISH} WHERE trace_id = :trace_id RETURNING id"
FINISH_RUNNING = f"{_FINISH} WHERE trace_id = :trace_id AND status = 'RUNNING' RETURNING id"

# The record of a call's end may arrive before that of its beginning, if that waited in the spool.
CALL = f"""{_insert("executioncall", CALLED)}
    ON CONFLICT (trace_id, task_id)
    DO UPDATE SET {_excluded(("success", "result_summary", "error_code", "error", "duration_ms", "answered_from"))}
    WHERE excluded.success IS NOT NULL"""

DECISION = f"{_insert('executiondecision', DECIDED)} ON CONFLICT (trace_id, number) DO NOTHING"

# A replay changes nothing. If the true outcome arrives after the verdict "its host died", it is to be sent
# again. It gets the next number, so that readers of the traces in order see it.
TRACE = f"""{_insert("executiontrace", TRACED)}
    ON CONFLICT (trace_id) DO UPDATE SET {_excluded(("id", "wire", "state", "attempts", "reason"))},
        next_attempt_at = NULL, lease_owner = NULL, lease_until = NULL
    WHERE executiontrace.wire <> excluded.wire"""


@cache
def with_trace(ending: str) -> str:
    """Return an ending and its trace in one statement for PostgreSQL: one round trip instead of four."""
    trace = re.sub(r"VALUES \((.*?)\)", r"SELECT \1 FROM ended", TRACE)
    return f"WITH ended AS ({ending}), traced AS ({trace}) SELECT id FROM ended"  # noqa: S608 - our names


#: A tool's active revision with its code, for that persona and for `default`.
LOOKUP = """SELECT tool.tool_name, tool.target_persona, tool.description, tool.input_schema, tool.grants,
        tool.examples, tool.flags, tool.group_name, revision.number, revision.code_hash, revision.draft,
        code.code, code.type, code.hash
    FROM toolregistry AS tool
    JOIN revision ON revision.tool_name = tool.tool_name
        AND revision.target_persona = tool.target_persona AND revision.number = tool.active_revision
    JOIN codevault AS code ON code.hash = revision.code_hash
    WHERE tool.tool_name = :name AND tool.removed_at IS NULL
        AND (tool.target_persona = :persona OR tool.target_persona = 'default')"""

#: Every tool that has run, and the newest informative runs of one; written exactly as in its index.
TOOLS_RUN = "SELECT DISTINCT tool_name FROM executionday"
RUNS_OF = """SELECT arguments, status, code_hash, ename, error_code FROM executionlog
    WHERE tool_name = :tool_name AND origin <> 'trial' AND origin <> 'search' AND origin <> 'try'
        AND status <> 'RUNNING' ORDER BY timestamp DESC, id DESC LIMIT :limit"""

#: A row that differs after each change of a tool.
TOOLS_STAMP = """SELECT count(*) AS tools, max(updated_at) AS newest, sum(active_revision) AS revisions,
        count(removed_at) AS removed FROM toolregistry"""

#: The personas whose entry has, or had, that code.
OWNERS = """SELECT DISTINCT target_persona FROM revision
    WHERE code_hash = :code_hash AND tool_name IN (
        SELECT :name UNION SELECT tool.tool_name FROM toolchange AS change
            JOIN toolregistry AS tool ON tool.id = change.tool_id
            WHERE change.kind = 'renamed' AND change.old_name = :name)"""

#: The newest executions without trials and searches (`contracts.execution.TRIED_ORIGINS`).
NEWEST = """SELECT * FROM executionlog WHERE origin <> 'trial' AND origin <> 'search'
    ORDER BY timestamp DESC, id DESC LIMIT :limit"""

#: Number of trials and searches after the execution with that time and id, up to the limit.
TRIED_SINCE = """SELECT count(*) AS count FROM (
        SELECT id FROM executionlog
        WHERE (origin = 'trial' OR origin = 'search') AND (timestamp, id) > (:time, :end) LIMIT :limit
    ) AS tried"""

#: The time of the row that is listed first.
NEWEST_TIME = "SELECT max(timestamp) AS timestamp FROM executionlog"

RUNNING = "SELECT id FROM executionlog WHERE status = 'RUNNING'"


class Prepared(NamedTuple):
    """Statement in one driver's form, with the names of its parameters in order, and those of times among them.

    SQLite takes the values as a sequence, which costs a third less than by name; PostgreSQL's driver takes a dict.
    """

    sql: str
    names: list[str]
    times: list[str]
    on_sqlite: bool

    def bind(self, values: dict[str, Any]) -> Any:
        """Return the values in the driver's form; raise `ValueError` for a naive time."""
        bound = values.copy()
        write = sqlite_time if self.on_sqlite else _utc
        for name in self.times:
            if (time := bound[name]) is not None:
                bound[name] = write(time)
        return list(map(bound.__getitem__, self.names)) if self.on_sqlite else bound


@cache
def prepared(dialect_name: str, statement: str) -> Prepared:
    """Prepare a statement for the driver of `sqlite` or `postgresql`; raise `ConfigError` for another."""
    if dialect_name not in {"sqlite", "postgresql"}:
        raise ConfigError(
            f"healkit keeps no log on {dialect_name!r}.", hint="Use a SQLite file or a PostgreSQL URL."
        )
    on_sqlite = dialect_name == "sqlite"
    names = _PARAMETER.findall(statement)
    times = [name for name in dict.fromkeys(names) if name in _TIME_PARAMETERS]
    return Prepared(_PARAMETER.sub("?" if on_sqlite else r"%(\1)s", statement), names, times, on_sqlite)


def dicts_of(dialect_name: str, cursor: DBAPICursor) -> list[dict[str, Any]]:
    """Read all rows of a result as dicts by column, with times in UTC and JSON decoded.

    Raises `DatabaseCorrupt` for an invalid time or invalid JSON.
    """
    names = list(map(itemgetter(0), cursor.description))
    readers = _READERS[dialect_name]
    special = [(name, read) for name in names if (read := readers.get(name)) is not None]
    rows = []
    for row in cursor.fetchall():
        values = dict(zip(names, row, strict=True))
        for name, read in special:
            if values[name] is not None:
                try:
                    values[name] = read(values[name])
                except (ValueError, TypeError, msgspec.MsgspecError):
                    raise unreadable(name, values[name]) from None
        rows.append(values)
    return rows


def unreadable(column: str, value: object) -> DatabaseCorrupt:
    """Return the error for a value that healkit cannot have written into that column."""
    return DatabaseCorrupt(
        f"The database holds {one_line(repr(value), 60)} in a column {column!r}, which healkit did not write.",
        hint="Restore the database from a copy, or move it away to start with a new one.",
    )


def read_column(dialect_name: str, name: str, value: object) -> Any:
    """Convert a driver's value to the type of the table's column."""
    read = _READERS[dialect_name].get(name)
    return value if read is None or value is None else read(value)


def _sqlite_moment(value: str) -> datetime:
    return datetime.fromisoformat(value).replace(tzinfo=UTC)


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone; healkit stores aware times only")
    return value if value.tzinfo is UTC else value.astimezone(UTC)


#: Functions that convert a driver's value, by dialect and column; psycopg decodes JSON itself.
_READERS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "sqlite": {
        **dict.fromkeys(TIMES, _sqlite_moment),
        **dict.fromkeys(JSONS, json.loads),
        **dict.fromkeys(BOOLS, bool),
    },
    "postgresql": dict.fromkeys(TIMES, _utc),
}


def sqlite_time(value: datetime) -> str:
    """Format a time in SQLAlchemy's form for SQLite: in UTC, without the offset."""
    if value.tzinfo is UTC and value.microsecond:
        written = str(_encode(value), "ascii")  # in quotes, with a T and a Z; much faster than isoformat
        return f"{written[1:11]} {written[12:27]}"
    return _utc(value).isoformat(" ", "microseconds").removesuffix("+00:00")


def started_values(record: Started) -> dict[str, Any]:
    """Return the columns of a row that is about to run."""
    values = msgspec.structs.asdict(record)
    values["status"] = "RUNNING"
    values["last_output"] = ""
    values["grants"] = _encode(record.grants).decode()
    values["host"] = _encode(record.host).decode()
    return values


def moved_values(record: Started) -> dict[str, Any]:
    """Return the host column of a row whose time differs from the clock there."""
    host = moved_to(record, record.timestamp).host
    return {"trace_id": record.trace_id, "host": _encode(host).decode()}


def moved_to(record: Started, time: datetime) -> Started:
    """Return the beginning with another time, and the clock's time beside it."""
    host = msgspec.structs.replace(record.host, clock=record.timestamp.isoformat())
    return msgspec.structs.replace(record, timestamp=time, host=host)


def finished_values(record: Finished) -> dict[str, Any]:
    """Return the columns that the end of an execution fills in, and its trace id."""
    failure, summary = record.failure, record.result_summary
    if summary is None and failure is not None:
        summary = failure.summary
    return {
        "trace_id": record.trace_id,
        "status": record.status,
        "result_summary": None if summary is None else shortened(summary),
        "error_traceback": None if failure is None else failure.traceback,
        "error_code": None if failure is None else failure.code,
        "ename": None if failure is None else failure.ename,
        "evalue": None if failure is None else shortened(failure.evalue),
        "failure": None if failure is None else _encode(failure).decode(),
        "fingerprint": record.fingerprint,
        "finished_at": record.finished_at,
        "duration_ms": record.duration_ms,
        "last_output": record.last_output,
    }


def call_values(record: CallRecord) -> dict[str, Any]:
    """Return the columns of a bridged call."""
    values, arguments = msgspec.structs.asdict(record), record.arguments
    if arguments.endswith("characters]") or not arguments.endswith("}"):  # cut, so not a JSON object
        values["arguments"] = _encode(arguments).decode()
    return {**values, "result_summary": shortened(record.result_summary, CALL_MAX_CHARS)}


def decision_values(record: DecisionRecord) -> dict[str, Any]:
    """Return the columns of a branch decision."""
    return msgspec.structs.asdict(record)


def trace_values(trace_id: str, trace: StoredTrace, created_at: datetime) -> dict[str, Any]:
    """Return the columns of a trace that was not sent yet."""
    return {
        "trace_id": trace_id,
        "parent_trace_id": trace.parent_trace_id,
        "wire": trace.wire,
        "state": "pending" if trace.send else "local",
        "attempts": 0,
        "reason": "",
        "created_at": created_at,
        "queued_at": created_at,
    }
