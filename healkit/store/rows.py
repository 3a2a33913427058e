"""The statements of the execution path, as SQLAlchemy Core writes them from the tables; kept in `statements.json`.

An ORM session for each row costs 32 times a bare insert, SQLAlchemy Core on a held connection 3.5 times; the bound is
three. So Core writes each statement once, before it is needed, and `store.statements` runs the text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Dialect,
    Integer,
    Select,
    Table,
    bindparam,
    func,
    literal_column,
    null,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from healkit.contracts.records import TRIED_ORIGINS
from healkit.errors import ConfigError
from healkit.store.columns import UtcDateTime, table_of
from healkit.store.models import (
    CodeVault,
    ExecutionCall,
    ExecutionDecision,
    ExecutionLog,
    Revision,
    ToolRegistry,
    TraceRow,
)
from healkit.store.statements import Kind, Statement, Statements

_INSERTS: dict[str, Callable[[Table], Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}

LOG: Table = table_of(ExecutionLog)
CALLS: Table = table_of(ExecutionCall)
DECISIONS: Table = table_of(ExecutionDecision)
TRACES: Table = table_of(TraceRow)

_STARTED = (
    "trace_id", "timestamp", "tool_name", "persona", "arguments", "status", "parent_trace_id", "origin",
    "revision", "code_hash", "isolation", "grants", "deadline", "last_output", "host", "run_id",
)  # fmt: skip
_FINISHED = (
    "status", "result_summary", "error_traceback", "error_code", "ename", "evalue", "failure", "fingerprint",
    "finished_at", "duration_ms", "last_output",
)  # fmt: skip
_TRACE = ("trace_id", "parent_trace_id", "wire", "state", "attempts", "reason", "created_at", "queued_at")
_CALL_ENDED = ("success", "result_summary", "error_code", "error", "duration_ms")
_LOOKED_UP = (
    "tool_name", "target_persona", "description", "input_schema", "grants", "examples", "flags", "group_name",
)  # fmt: skip


def insert_into(dialect_name: str, table: Table) -> Any:
    """An insert of that dialect, which knows what to do on a conflict; raises `ConfigError` for a third one."""
    if dialect_name not in _INSERTS:
        raise ConfigError(
            f"healkit keeps no log on {dialect_name!r}.", hint="Use a SQLite file or a PostgreSQL URL."
        )
    return _INSERTS[dialect_name](table)


def compiled(dialect: Dialect) -> Statements:
    """What `statements.json` holds for that dialect; raises `ConfigError` for one that healkit keeps no log on."""
    insert = partial(insert_into, dialect.name)
    started = insert(LOG).values(_binds(LOG, _STARTED)).returning(LOG.c.id)
    # A replay must find its row and say its id, and must not turn a finished row into a running one. A row that was
    # begun before its tier was known is begun once more with it.
    begin = started.on_conflict_do_update(
        index_elements=["trace_id"],
        set_={"isolation": func.coalesce(started.excluded.isolation, LOG.c.isolation)},
    )
    whole = insert(LOG).values(_binds(LOG, tuple(dict.fromkeys(_STARTED + _FINISHED)))).returning(LOG.c.id)
    whole = whole.on_conflict_do_update(
        index_elements=["trace_id"], set_={name: whole.excluded[name] for name in _FINISHED}
    )
    finish = update(LOG).where(LOG.c.trace_id == bindparam("its_trace", type_=LOG.c.trace_id.type))
    finish = finish.values(_binds(LOG, _FINISHED)).returning(LOG.c.id)
    finish_running = finish.where(LOG.c.status == bindparam("was", type_=LOG.c.status.type))
    decided = tuple(column.name for column in DECISIONS.columns if column.name != "id")
    decision = insert(DECISIONS).values(_binds(DECISIONS, decided))
    made = {
        "begin": begin,
        "whole": whole,
        "finish": finish,
        "finish_running": finish_running,
        "call": _call_statement(insert),
        "decision": decision.on_conflict_do_nothing(index_elements=["trace_id", "number"]),
        "trace": _trace_statement(insert),
        "lookup": _lookup_statement(),
        "owners": _owners_statement(),
        "newest": _newest_statement(),
        "tried_since": _tried_statement(),
        "running": select(LOG.c.id).where(LOG.c.status == literal_column("'RUNNING'")),
    }
    return Statements(**{name: _compiled(statement, dialect) for name, statement in made.items()})


def _compiled(statement: Any, dialect: Dialect) -> Statement:
    found = statement.compile(dialect=dialect)
    positions = getattr(found, "positiontup", None)
    names = positions if positions is not None else list(found.binds)
    columns = statement.selected_columns if isinstance(statement, Select) else ()
    return Statement(
        str(found),
        positions is not None,
        [(name, _kind(found.binds[name].type)) for name in names],
        [(column.name, _kind(column.type)) for column in columns],
    )


def _kind(type_: Any) -> Kind:
    kinds: list[tuple[Any, Kind]] = [(UtcDateTime, "time"), (JSON, "json"), (Boolean, "bool")]
    return next((kind for known, kind in kinds if isinstance(type_, known)), "plain")


def _call_statement(insert: Callable[[Table], Any]) -> Any:
    """The record of a call's end may overtake that of its beginning, when the latter waited in the spool."""
    call = insert(CALLS).values(
        _binds(CALLS, tuple(column.name for column in CALLS.columns if column.name != "id"))
    )
    return call.on_conflict_do_update(
        index_elements=["trace_id", "task_id"],
        set_={name: call.excluded[name] for name in _CALL_ENDED},
        where=call.excluded.success.is_not(None),
    )


def _lookup_statement() -> Any:
    """A tool's active revision with its code, for that persona and for `default`."""
    tool, revision, code = table_of(ToolRegistry), table_of(Revision), table_of(CodeVault)
    persona = bindparam("persona", type_=tool.c.target_persona.type)
    return (
        select(
            *(tool.c[name] for name in _LOOKED_UP),
            *(revision.c[name] for name in ("number", "code_hash", "draft")),
            *(code.c[name] for name in ("code", "type", "hash")),
        )
        .where(revision.c.tool_name == tool.c.tool_name)
        .where(revision.c.target_persona == tool.c.target_persona)
        .where(revision.c.number == tool.c.active_revision)
        .where(code.c.hash == revision.c.code_hash)
        .where(tool.c.tool_name == bindparam("name", type_=tool.c.tool_name.type))
        .where(or_(tool.c.target_persona == persona, tool.c.target_persona == literal_column("'default'")))
    )


def _newest_statement() -> Any:
    """The newest executions, without those that only tried code out."""
    return (
        select(*LOG.columns)
        .where(*(LOG.c.origin != literal_column(f"'{origin}'") for origin in TRIED_ORIGINS))
        .order_by(LOG.c.timestamp.desc(), LOG.c.id.desc())
        .limit(bindparam("limit", type_=Integer()))
        .offset(literal_column("0"))
    )


def _tried_statement() -> Any:
    """How many executions only tried code out after the one with that time and id, up to the bound."""
    tried = or_(*(LOG.c.origin == literal_column(f"'{origin}'") for origin in TRIED_ORIGINS))
    end = bindparam("time", type_=LOG.c.timestamp.type), bindparam("end", type_=LOG.c.id.type)
    found = select(LOG.c.id).where(tried, tuple_(LOG.c.timestamp, LOG.c.id) > tuple_(*end))
    bounded = found.limit(bindparam("limit", type_=Integer())).offset(literal_column("0")).subquery()
    return select(func.count().label("count")).select_from(bounded)


def _owners_statement() -> Any:
    """The personas whose entry has, or had, that code."""
    revision = table_of(Revision)
    return (
        select(revision.c.target_persona)
        .where(revision.c.tool_name == bindparam("name", type_=revision.c.tool_name.type))
        .where(revision.c.code_hash == bindparam("code_hash", type_=revision.c.code_hash.type))
        .distinct()
    )


def _trace_statement(insert: Callable[[Table], Any]) -> Any:
    """A replay changes nothing; a true ending that comes after a verdict that the host died is to be sent again."""
    statement = insert(TRACES).values(_binds(TRACES, _TRACE))
    return statement.on_conflict_do_update(
        index_elements=["trace_id"],
        set_={
            **{name: statement.excluded[name] for name in ("wire", "state", "attempts", "reason")},
            **dict.fromkeys(("next_attempt_at", "lease_owner", "lease_until"), null()),
        },
        where=TRACES.c.wire != statement.excluded.wire,
    )


def _binds(table: Table, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: bindparam(name, type_=table.c[name].type) for name in names}
