"""Tables of the first release, and their triggers.

Triggers derive three things from `executionlog`, in the transaction of the row itself: `executionday` (a tool's day),
`failuregroup` (failures of one fingerprint) and a full-text index over tracebacks. Triggers, not the writer, do this.
So the counts are right in whatever way a row is added, ends or is deleted. Examples are a replayed spool, an orphan's
recovery, an import, retention, another program. A finished row counts; a RUNNING one does not yet. Trials and searches
are counted by day under revision -1, and have no fingerprint. Refused calls are counted apart from failures of code, by
their `error_code`.

SQLite's index is an FTS5 table without content, whose row ids are in order of time. It returns the newest matches
first, so the first page of a common word costs as much as that of a rare one. `executionlog_fts_rows` maps each of them
to its row of the log. PostgreSQL has a GIN index over the same words.

SQLite runs each trigger's program even to find that its condition is false. So an insert has one trigger and an update
two, and a successful run only needs the one named `ended`.

An audit entry is never changed or removed. The trigger for a new entry refuses a gap in the numbers. So it also refuses
SQLite's `INSERT OR REPLACE`, which removes a row without running the triggers for removal.
"""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None

#: `«id»`, `«time»` and `«compact»` are replaced for each dialect.
_VAULT = """
CREATE TABLE codevault (
    hash VARCHAR(64) NOT NULL PRIMARY KEY,
    code TEXT NOT NULL,
    type VARCHAR(16) NOT NULL,
    created_at «time» NOT NULL
);
CREATE TABLE toolregistry (
    id «id»,
    tool_name VARCHAR NOT NULL,
    target_persona VARCHAR NOT NULL,
    description TEXT NOT NULL,
    input_schema JSON NOT NULL,
    active_hash VARCHAR NOT NULL REFERENCES codevault (hash),
    active_revision INTEGER NOT NULL,
    group_name VARCHAR NOT NULL,
    flags JSON NOT NULL,
    grants JSON NOT NULL,
    examples JSON NOT NULL,
    created_at «time» NOT NULL,
    updated_at «time» NOT NULL,
    removed_at «time»,
    CONSTRAINT uq_toolregistry_tool UNIQUE (tool_name, target_persona)
);
CREATE TABLE toolchange (
    id «id»,
    tool_id INTEGER NOT NULL REFERENCES toolregistry (id),
    kind VARCHAR(16) NOT NULL,
    old_name VARCHAR NOT NULL,
    new_name VARCHAR NOT NULL,
    reason TEXT NOT NULL,
    changed_at «time» NOT NULL
);
CREATE INDEX ix_toolchange_old_name ON toolchange (old_name);
CREATE INDEX ix_toolchange_tool ON toolchange (tool_id);
CREATE TABLE revision (
    id «id»,
    tool_name VARCHAR NOT NULL,
    target_persona VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    code_hash VARCHAR NOT NULL REFERENCES codevault (hash),
    parent INTEGER,
    author VARCHAR(16) NOT NULL,
    reason TEXT NOT NULL,
    motivating_log_id INTEGER,
    draft BOOLEAN NOT NULL,
    created_at «time» NOT NULL,
    CONSTRAINT uq_revision_number UNIQUE (tool_name, target_persona, number)
);
CREATE TABLE patchrequest (
    id «id»,
    tool_name VARCHAR NOT NULL,
    target_persona VARCHAR NOT NULL,
    parent INTEGER NOT NULL,
    code_hash VARCHAR(64) NOT NULL REFERENCES codevault (hash),
    advisor VARCHAR NOT NULL,
    author VARCHAR(16) NOT NULL,
    reason TEXT NOT NULL,
    verdict VARCHAR(16) NOT NULL,
    motivating_log_id INTEGER,
    run_id VARCHAR,
    state VARCHAR(16) NOT NULL,
    created_at «time» NOT NULL,
    decided_at «time»,
    decided_by VARCHAR NOT NULL,
    revision INTEGER,
    note TEXT NOT NULL,
    CONSTRAINT uq_patchrequest_patch UNIQUE (tool_name, target_persona, parent, code_hash)
);
CREATE INDEX ix_patchrequest_pending ON patchrequest (created_at) WHERE state = 'pending';
CREATE TABLE dataview (
    id «id»,
    view_name VARCHAR NOT NULL,
    sha256 VARCHAR(64) NOT NULL,
    kind VARCHAR(32) NOT NULL,
    shape JSON NOT NULL,
    columns JSON NOT NULL,
    row_count BIGINT NOT NULL,
    file_name VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_by VARCHAR NOT NULL,
    created_at «time» NOT NULL,
    named BOOLEAN NOT NULL,
    evicted_at «time»,
    CONSTRAINT uq_dataview_name UNIQUE (view_name)
);
CREATE INDEX ix_dataview_sha256 ON dataview (sha256);
CREATE TABLE dataviewuse (
    trace_id VARCHAR(36) NOT NULL,
    side VARCHAR(16) NOT NULL,
    number INTEGER NOT NULL,
    sha256 VARCHAR(64) NOT NULL,
    PRIMARY KEY (trace_id, side, number)
);
CREATE INDEX ix_dataviewuse_sha256 ON dataviewuse (sha256);
"""

#: The codes of runs, as in `errors.TOOL_CODES`: any other is that of a refused call.
_RAN = (
    "'HOST_DIED', 'INTERNAL_ERROR', 'SQL_ERROR', 'TOOL_CPU_LIMIT', 'TOOL_CRASHED', 'TOOL_DISK_LIMIT', "
    "'TOOL_EXCEPTION', 'TOOL_EXITED', 'TOOL_KILLED', 'TOOL_OUTPUT_LIMIT', 'TOOL_OUT_OF_MEMORY', 'TOOL_PROTOCOL', "
    "'TOOL_RESULT_TOO_LARGE', 'TOOL_RESULT_UNSUPPORTED', 'TOOL_TIMEOUT', 'WORKER_LOST'"
)

#: Of two suitable indexes, SQLite uses the one that was made last; a tool's own failures may be few.
_LOG = f"""
CREATE TABLE executionlog (
    id «id»,
    timestamp «time» NOT NULL,
    tool_name VARCHAR NOT NULL,
    persona VARCHAR NOT NULL,
    arguments JSON,
    status VARCHAR(16) NOT NULL,
    result_summary TEXT,
    error_traceback TEXT,
    trace_id VARCHAR(36) NOT NULL,
    parent_trace_id VARCHAR(36),
    origin VARCHAR NOT NULL,
    revision INTEGER,
    code_hash VARCHAR(64),
    isolation VARCHAR,
    grants JSON,
    error_code VARCHAR,
    ename TEXT,
    evalue TEXT,
    failure JSON,
    fingerprint VARCHAR,
    finished_at «time»,
    duration_ms FLOAT,
    deadline «time»,
    last_output TEXT NOT NULL,
    host JSON,
    run_id VARCHAR,
    CONSTRAINT uq_executionlog_trace UNIQUE (trace_id)
);
CREATE INDEX ix_executionlog_tool_time ON executionlog (tool_name, timestamp);
CREATE INDEX ix_executionlog_time ON executionlog (timestamp);
CREATE INDEX ix_executionlog_failed_tool_time ON executionlog (tool_name, timestamp) WHERE status = 'FAILURE';
CREATE INDEX ix_executionlog_failed_time ON executionlog (timestamp) WHERE status = 'FAILURE';
CREATE INDEX ix_executionlog_running ON executionlog (timestamp) WHERE status = 'RUNNING';
CREATE INDEX ix_executionlog_fingerprint ON executionlog (fingerprint, timestamp) WHERE fingerprint IS NOT NULL;
CREATE INDEX ix_executionlog_run ON executionlog (run_id, timestamp) WHERE run_id IS NOT NULL;
CREATE INDEX ix_executionlog_parent ON executionlog (parent_trace_id) WHERE parent_trace_id IS NOT NULL;
CREATE INDEX ix_executionlog_persona ON executionlog (persona, timestamp) WHERE persona <> 'default';
CREATE INDEX ix_executionlog_origin_time ON executionlog (origin, timestamp);
CREATE INDEX ix_executionlog_own_tool_time ON executionlog (tool_name, timestamp)
    WHERE origin <> 'trial' AND origin <> 'search';
CREATE INDEX ix_executionlog_own_time ON executionlog (timestamp) WHERE origin <> 'trial' AND origin <> 'search';
CREATE INDEX ix_executionlog_own_failed_tool_time ON executionlog (tool_name, timestamp)
    WHERE status = 'FAILURE' AND origin <> 'trial' AND origin <> 'search';
CREATE INDEX ix_executionlog_own_failed_time ON executionlog (timestamp)
    WHERE status = 'FAILURE' AND origin <> 'trial' AND origin <> 'search';
CREATE INDEX ix_executionlog_refused_time ON executionlog (timestamp)
    WHERE status = 'FAILURE' AND error_code NOT IN ({_RAN});
CREATE TABLE executioncall (
    id «id»,
    trace_id VARCHAR(36) NOT NULL,
    task_id VARCHAR(16) NOT NULL,
    server VARCHAR NOT NULL,
    tool VARCHAR NOT NULL,
    arguments JSON,
    started_at «time» NOT NULL,
    success BOOLEAN,
    result_summary TEXT NOT NULL,
    error_code VARCHAR,
    error TEXT NOT NULL,
    duration_ms FLOAT,
    CONSTRAINT uq_executioncall_task UNIQUE (trace_id, task_id)
);
CREATE TABLE executiondecision (
    id «id»,
    trace_id VARCHAR(36) NOT NULL,
    number INTEGER NOT NULL,
    after_task VARCHAR(16) NOT NULL,
    node TEXT NOT NULL,
    outcome TEXT NOT NULL,
    condition TEXT NOT NULL,
    decided_at «time» NOT NULL,
    CONSTRAINT uq_executiondecision_number UNIQUE (trace_id, number)
);
CREATE TABLE executiontrace (
    id «id»,
    trace_id VARCHAR(36) NOT NULL,
    parent_trace_id VARCHAR(36),
    wire TEXT NOT NULL,
    state VARCHAR(16) NOT NULL,
    attempts INTEGER NOT NULL,
    reason TEXT NOT NULL,
    created_at «time» NOT NULL,
    queued_at «time» NOT NULL,
    attempted_at «time»,
    next_attempt_at «time»,
    lease_owner TEXT,
    lease_until «time»,
    CONSTRAINT uq_executiontrace_trace UNIQUE (trace_id)
);
CREATE INDEX ix_executiontrace_state ON executiontrace (state, queued_at);
CREATE INDEX ix_executiontrace_parent ON executiontrace (parent_trace_id);
CREATE TABLE collectedtrace (
    id «id»,
    trace_id VARCHAR(36) NOT NULL,
    parent_trace_id VARCHAR(36),
    capability_id TEXT NOT NULL,
    tool_name VARCHAR NOT NULL,
    tool_id INTEGER,
    success BOOLEAN NOT NULL,
    timestamp «time» NOT NULL,
    duration_ms FLOAT NOT NULL,
    detail INTEGER NOT NULL,
    digest VARCHAR(64) NOT NULL,
    wire TEXT NOT NULL,
    received_at «time» NOT NULL,
    CONSTRAINT uq_collectedtrace_trace UNIQUE (trace_id)
);
CREATE INDEX ix_collectedtrace_time ON collectedtrace (timestamp, id);
CREATE INDEX ix_collectedtrace_tool_time ON collectedtrace (tool_name, timestamp, id);
CREATE INDEX ix_collectedtrace_failed_tool_time ON collectedtrace (tool_name, timestamp, id) WHERE NOT success;
CREATE INDEX ix_collectedtrace_failed_time ON collectedtrace (timestamp, id) WHERE NOT success;
CREATE INDEX ix_collectedtrace_parent ON collectedtrace (parent_trace_id) WHERE parent_trace_id IS NOT NULL;
CREATE INDEX ix_collectedtrace_standalone ON collectedtrace (capability_id) WHERE tool_id IS NULL;
CREATE TABLE executionday (
    tool_name VARCHAR NOT NULL,
    day DATE NOT NULL,
    persona VARCHAR NOT NULL,
    revision INTEGER NOT NULL,
    within_ms INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    refused INTEGER DEFAULT '0' NOT NULL,
    total_us BIGINT NOT NULL,
    PRIMARY KEY (tool_name, day, persona, revision, within_ms)
)«compact»;
CREATE TABLE failuregroup (
    fingerprint VARCHAR NOT NULL,
    tool_name VARCHAR NOT NULL,
    persona VARCHAR NOT NULL,
    failures INTEGER NOT NULL,
    first_seen «time» NOT NULL,
    first_log_id INTEGER NOT NULL,
    last_seen «time» NOT NULL,
    last_log_id INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, tool_name, persona)
)«compact»;
CREATE INDEX ix_failuregroup_seen ON failuregroup (last_seen);
"""

_AUDIT = """
CREATE TABLE traceauditchain (chain VARCHAR(64) NOT NULL PRIMARY KEY);
CREATE TABLE traceauditentry (
    id INTEGER NOT NULL PRIMARY KEY,
    execution_id VARCHAR(128) NOT NULL,
    execution_type VARCHAR(16) NOT NULL,
    seq INTEGER NOT NULL,
    timestamp «time» NOT NULL,
    choice_type VARCHAR(40) NOT NULL,
    tool_name TEXT NOT NULL,
    tool_params TEXT NOT NULL,
    metadata TEXT NOT NULL,
    description TEXT NOT NULL,
    run_id VARCHAR,
    event_seq INTEGER,
    previous_hash VARCHAR(64) NOT NULL,
    hash VARCHAR(64) NOT NULL,
    CONSTRAINT uq_traceauditentry_seq UNIQUE (execution_id, seq)
);
"""
#: Append-only tables; an entry must have the next number, and the chain already has its one row.
_APPENDED = ("traceauditentry", "traceauditchain")
_ONLY_APPENDED = "the audit is append-only"
#: Condition on an entry that does not follow the existing ones.
_NOT_NEXT = """new.id IS DISTINCT FROM (SELECT coalesce(max(id), 0) + 1 FROM traceauditentry)
    OR new.seq IS DISTINCT FROM (
        SELECT coalesce(max(seq), 0) + 1 FROM traceauditentry WHERE execution_id = new.execution_id
    )"""

#: The columns of a row that its counts depend on.
_COUNTED = "status, timestamp, tool_name, persona, revision, duration_ms, fingerprint, error_code"
#: Upper ends of the classes of durations, in ms: 1, 2, 5, 10 … 1,000,000,000.
_ENDS = [digit * 10**power for power in range(9) for digit in (1, 2, 5)] + [10**9]
_ENDED, _FAILED = "{row}.status <> 'RUNNING'", "{row}.status = 'FAILURE' AND {row}.fingerprint IS NOT NULL"
_TRACED = "{row}.error_traceback IS NOT NULL"
_ONE_FAILED = (
    f"CASE WHEN {{row}}.status = 'FAILURE' AND coalesce({{row}}.error_code, 'TOOL_EXCEPTION') IN ({_RAN}) "
    "THEN 1 ELSE 0 END"
)
_ONE_REFUSED = (
    f"CASE WHEN {{row}}.status = 'FAILURE' AND {{row}}.error_code NOT IN ({_RAN}) THEN 1 ELSE 0 END"
)
_GROUP = "(fingerprint, tool_name, persona) = (old.fingerprint, old.tool_name, old.persona)"
# The millisecond of the row's time, then 21 bits of its id, which distinguish rows of the same millisecond.
_KEY = (
    "((coalesce(CAST(strftime('%s', substr({row}.timestamp, 1, 19)) AS INTEGER), 0) * 1000"
    " + CAST(substr({row}.timestamp || '.000', 21, 3) AS INTEGER)) * 2097152 + {row}.id % 2097152)"
)
# One of the words says whether the row is a trial or search, so that a search without those does not read
# them.
_FACTS = (
    "({row}.tool_name || ' ' || {row}.persona || ' ' || coalesce({row}.fingerprint, '')"
    " || ' ' || coalesce({row}.run_id, '') || ' ' || {row}.status || CASE WHEN {row}.origin IN ('trial', 'search')"
    " THEN '' ELSE ' healkitown healkitown' || {row}.tool_name END)"
)


def upgrade() -> None:
    """Make all tables, their indexes and triggers, and begin the audit's chain."""
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in (_VAULT + _LOG + _AUDIT).split(";"):
        if statement.strip():
            _execute(_in_dialect(statement, on_sqlite=on_sqlite))
    chain = sa.table("traceauditchain", sa.column("chain"))
    op.execute(sa.insert(chain).values(chain=secrets.token_hex(32)))
    _on_sqlite() if on_sqlite else _on_postgresql()


def _execute(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)


def _in_dialect(statement: str, *, on_sqlite: bool) -> str:
    whole = "INTEGER NOT NULL PRIMARY KEY" if on_sqlite else "SERIAL PRIMARY KEY"
    time = "DATETIME" if on_sqlite else "TIMESTAMP WITH TIME ZONE"
    compact = " WITHOUT ROWID" if on_sqlite else ""
    return statement.replace("«id»", whole).replace("«time»", time).replace("«compact»", compact)


def _on_sqlite() -> None:
    _execute("CREATE TABLE executionlog_fts_rows (key INTEGER PRIMARY KEY, log_id INTEGER NOT NULL)")
    _execute(
        "CREATE VIRTUAL TABLE executionlog_fts USING fts5"
        "(facts, traceback, content='', columnsize=0, tokenize='unicode61')"
    )
    ended, traced = ({row: text.format(row=row) for row in ("old", "new")} for text in (_ENDED, _TRACED))
    failed = {row: _FAILED.format(row=row) for row in ("old", "new")}
    on_change = f"UPDATE OF {_COUNTED}, error_traceback, run_id"
    for name, event, condition, body in (
        ("group_delete", "DELETE", failed["old"], _uncount_group()),
        ("words_delete", "DELETE", traced["old"], _forget_words()),
        (
            "inserted", "INSERT", f"{ended['new']} OR {traced['new']}",
            _count_day(where=ended["new"]) + _count_group(where=failed["new"]) + _index_words(),
        ),
        ("ended", on_change, ended["new"], _count_day()),
        (
            "changed", on_change,
            f"{ended['old']} OR new.status = 'FAILURE' OR {traced['old']} OR {traced['new']}",
            _uncount_day(where=ended["old"]) + _uncount_group(where=failed["old"])
            + _count_group(where=failed["new"]) + _forget_words(where=traced["old"]) + _index_words(),
        ),
        ("day_delete", "DELETE", ended["old"], _uncount_day()),
    ):  # fmt: skip
        _execute(
            f"CREATE TRIGGER executionlog_{name} AFTER {event} ON executionlog WHEN {condition}\nBEGIN\n{body}END"
        )
    # SQLite only knows IS DISTINCT FROM since version 3.39; before, it is IS NOT.
    not_next = f"WHEN {_NOT_NEXT.replace('IS DISTINCT FROM', 'IS NOT')} "
    for table in _APPENDED:
        for event in ("insert", "update", "delete"):
            condition = not_next if (table, event) == ("traceauditentry", "insert") else ""
            _execute(
                f"CREATE TRIGGER {table}_{event} BEFORE {event.upper()} ON {table} {condition}"
                f"BEGIN SELECT RAISE(ABORT, '{_ONLY_APPENDED}'); END"
            )


def _on_postgresql() -> None:
    # Punctuation ends words, as in FTS5; PostgreSQL's own parser would keep paths and names whole.
    marks = """'!"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~'"""
    words = f"to_tsvector('simple', translate(left(error_traceback, 100000), {marks}, '{' ' * 32}'))"
    # As text, because psycopg would read a percent sign as a placeholder.
    op.execute(
        sa.text(
            "CREATE INDEX ix_executionlog_words ON executionlog USING gin "
            f"({words}) WHERE error_traceback IS NOT NULL"
        )
    )
    old, new = (
        f"IF {_ENDED.format(row=row)} THEN {days} END IF; IF {_FAILED.format(row=row)} THEN {groups} END IF;"
        for row, days, groups in (
            ("old", _uncount_day(on_sqlite=False), _uncount_group()),
            ("new", _count_day(on_sqlite=False), _count_group()),
        )
    )
    _execute(
        "CREATE FUNCTION healkit_log_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n"
        f"IF TG_OP <> 'INSERT' THEN {old} END IF;\nIF TG_OP <> 'DELETE' THEN {new} END IF;\n"
        "RETURN NULL; END $$"
    )
    _execute(
        f"CREATE TRIGGER executionlog_changed AFTER INSERT OR DELETE OR UPDATE OF {_COUNTED} ON executionlog "
        "FOR EACH ROW EXECUTE FUNCTION healkit_log_changed()"
    )
    raised = f"RAISE EXCEPTION '{_ONLY_APPENDED}' USING ERRCODE = 'restrict_violation';"
    for name, body in (("kept", raised), ("next", f"IF {_NOT_NEXT} THEN\n{raised} END IF;\nRETURN new;")):
        _execute(
            f"CREATE FUNCTION healkit_audit_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n{body} END $$"
        )
    changes = "UPDATE OR DELETE OR TRUNCATE"
    for table, event in zip(_APPENDED, (changes, f"INSERT OR {changes}"), strict=True):
        _execute(
            f"CREATE TRIGGER {table}_kept BEFORE {event} ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION healkit_audit_kept()"
        )
    _execute(
        "CREATE TRIGGER traceauditentry_next BEFORE INSERT ON traceauditentry "
        "FOR EACH ROW EXECUTE FUNCTION healkit_audit_next()"
    )


def _insertion(values: str, where: str) -> str:
    return f"SELECT {values} WHERE {where}" if where else f"VALUES ({values})"


def _also(where: str) -> str:
    return f" AND {where}" if where else ""


def _day_of(row: str, *, on_sqlite: bool) -> str:
    """Return the key of the day in which a row is counted."""
    day = (
        f"substr({row}.timestamp, 1, 10)"
        if on_sqlite
        else f"CAST({row}.timestamp AT TIME ZONE 'UTC' AS date)"
    )
    number = f"CASE WHEN {row}.origin IN ('trial', 'search') THEN -1 ELSE coalesce({row}.revision, 0) END"
    within = " ".join(f"WHEN {row}.duration_ms <= {end} THEN {end}" for end in _ENDS)
    within = f"CASE WHEN {row}.duration_ms IS NULL THEN 0 {within} ELSE 2000000000 END"
    return f"{row}.tool_name, {day}, {row}.persona, {number}, {within}"


def _microseconds(row: str, *, on_sqlite: bool) -> str:
    total = f"coalesce({row}.duration_ms, 0) * 1000"
    return f"CAST({total} AS INTEGER)" if on_sqlite else f"CAST(trunc({total}) AS bigint)"


def _count_day(where: str = "", *, on_sqlite: bool = True) -> str:
    values = ", ".join(
        (
            _day_of("new", on_sqlite=on_sqlite), "1", _ONE_FAILED.format(row="new"),
            _ONE_REFUSED.format(row="new"), _microseconds("new", on_sqlite=on_sqlite),
        )
    )  # fmt: skip
    return f"""
INSERT INTO executionday (tool_name, day, persona, revision, within_ms, runs, failures, refused, total_us)
    {_insertion(values, where)}
    ON CONFLICT (tool_name, day, persona, revision, within_ms) DO UPDATE SET
        runs = executionday.runs + 1,
        failures = executionday.failures + excluded.failures,
        refused = executionday.refused + excluded.refused,
        total_us = executionday.total_us + excluded.total_us;
"""


def _uncount_day(where: str = "", *, on_sqlite: bool = True) -> str:
    day = f"(tool_name, day, persona, revision, within_ms) = ({_day_of('old', on_sqlite=on_sqlite)})"
    return f"""
UPDATE executionday SET
        runs = runs - 1,
        failures = failures - {_ONE_FAILED.format(row="old")},
        refused = refused - {_ONE_REFUSED.format(row="old")},
        total_us = total_us - {_microseconds("old", on_sqlite=on_sqlite)}
    WHERE {day}{_also(where)};
DELETE FROM executionday WHERE {day} AND runs <= 0{_also(where)};
"""


def _count_group(where: str = "") -> str:
    values = "new.fingerprint, new.tool_name, new.persona, 1, new.timestamp, new.id, new.timestamp, new.id"
    earlier = (
        "(excluded.first_seen, excluded.first_log_id) < (failuregroup.first_seen, failuregroup.first_log_id)"
    )
    later = "(excluded.last_seen, excluded.last_log_id) > (failuregroup.last_seen, failuregroup.last_log_id)"
    updates = ",\n".join(
        f"        {column} = CASE WHEN {condition} THEN excluded.{column} ELSE failuregroup.{column} END"
        for end, condition in (("first", earlier), ("last", later))
        for column in (f"{end}_seen", f"{end}_log_id")
    )
    return f"""
INSERT INTO failuregroup
    (fingerprint, tool_name, persona, failures, first_seen, first_log_id, last_seen, last_log_id)
    {_insertion(values, where)}
    ON CONFLICT (fingerprint, tool_name, persona) DO UPDATE SET
        failures = failuregroup.failures + 1,
{updates};
"""


def _uncount_group(where: str = "") -> str:
    """Remove a row from its group; it may have been the first or the last one, and an index finds the next."""
    remaining_rows = f"FROM executionlog WHERE {_GROUP} AND status = 'FAILURE'"
    moved = "".join(
        f"""
UPDATE failuregroup SET ({end}_seen, {end}_log_id) = (
        SELECT timestamp, id {remaining_rows} ORDER BY timestamp {order}, id {order} LIMIT 1
    ) WHERE {_GROUP} AND {end}_log_id = old.id AND EXISTS (SELECT 1 {remaining_rows}){_also(where)};
"""
        for end, order in (("first", "ASC"), ("last", "DESC"))
    )
    return f"""
UPDATE failuregroup SET failures = failures - 1 WHERE {_GROUP}{_also(where)};
DELETE FROM failuregroup WHERE {_GROUP} AND failures <= 0{_also(where)};
{moved}"""


def _index_words() -> str:
    key, facts, traced = (text.format(row="new") for text in (_KEY, _FACTS, _TRACED))
    return f"""
INSERT OR IGNORE INTO executionlog_fts_rows (key, log_id) SELECT {key}, new.id WHERE {traced};
INSERT INTO executionlog_fts (rowid, facts, traceback)
    SELECT {key}, {facts}, new.error_traceback WHERE {traced};
"""


def _forget_words(where: str = "") -> str:
    key, facts = _KEY.format(row="old"), _FACTS.format(row="old")
    return f"""
DELETE FROM executionlog_fts_rows WHERE key = {key}{_also(where)};
INSERT INTO executionlog_fts (executionlog_fts, rowid, facts, traceback)
    {_insertion(f"'delete', {key}, {facts}, old.error_traceback", where)};
"""
