"""Indexes and counts that keep a large log fast.

Three things are derived from `executionlog` and kept by triggers, in the transaction of the row itself:
`executionday` (a tool's day), `failuregroup` (failures of one fingerprint) and a full-text index over tracebacks.
Triggers, not the writer, so that they are right after every way a row can come, end or go: a replayed spool, an
orphan's recovery, an import, retention, another program. A finished row counts; a RUNNING one does not yet.

SQLite's index is an FTS5 table without content, whose row ids are in the order of time: its answers come newest
first, so the first page of a common word costs what the first page of a rare one does. `executionlog_fts_rows` says
which row of the log each of them is. PostgreSQL has a GIN index over the same words.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

#: The upper ends of the classes that durations are counted in, in ms: 1, 2, 5, 10 … 1,000,000,000.
_ENDS = [digit * 10**power for power in range(9) for digit in (1, 2, 5)] + [10**9]

_FTS = """
CREATE VIRTUAL TABLE executionlog_fts USING fts5(
    facts, traceback, content='', columnsize=0, tokenize='unicode61'
)
"""

# The millisecond of the row's time, then 21 bits of its id, which tell apart what happened in one millisecond.
_KEY = (
    "((coalesce(CAST(strftime('%s', substr({row}.timestamp, 1, 19)) AS INTEGER), 0) * 1000"
    " + CAST(substr({row}.timestamp || '.000', 21, 3) AS INTEGER)) * 2097152 + {row}.id % 2097152)"
)
_FACTS = (
    "({row}.tool_name || ' ' || {row}.persona || ' ' || coalesce({row}.fingerprint, '')"
    " || ' ' || coalesce({row}.run_id, '') || ' ' || {row}.status)"
)
_INDEX_WORDS = """
INSERT OR IGNORE INTO executionlog_fts_rows (key, log_id) SELECT {key}, new.id WHERE new.error_traceback IS NOT NULL;
INSERT INTO executionlog_fts (rowid, facts, traceback)
    SELECT {key}, {facts}, new.error_traceback WHERE new.error_traceback IS NOT NULL;
"""
_FORGET_WORDS = """
DELETE FROM executionlog_fts_rows WHERE key = {key};
INSERT INTO executionlog_fts (executionlog_fts, rowid, facts, traceback)
    VALUES ('delete', {key}, {facts}, old.error_traceback);
"""

_COUNT_DAY = """
INSERT INTO executionday (tool_name, day, persona, revision, within_ms, runs, failures, total_us)
    VALUES ({tool_day}, 1, CASE WHEN new.status = 'FAILURE' THEN 1 ELSE 0 END, {microseconds})
    ON CONFLICT (tool_name, day, persona, revision, within_ms) DO UPDATE SET
        runs = executionday.runs + 1,
        failures = executionday.failures + excluded.failures,
        total_us = executionday.total_us + excluded.total_us;
"""
_UNCOUNT_DAY = """
UPDATE executionday SET
        runs = runs - 1,
        failures = failures - CASE WHEN old.status = 'FAILURE' THEN 1 ELSE 0 END,
        total_us = total_us - {microseconds}
    WHERE (tool_name, day, persona, revision, within_ms) = ({tool_day});
DELETE FROM executionday
    WHERE (tool_name, day, persona, revision, within_ms) = ({tool_day}) AND runs <= 0;
"""
_COUNT_GROUP = """
INSERT INTO failuregroup
    (fingerprint, tool_name, persona, failures, first_seen, first_log_id, last_seen, last_log_id)
    VALUES (new.fingerprint, new.tool_name, new.persona, 1, new.timestamp, new.id, new.timestamp, new.id)
    ON CONFLICT (fingerprint, tool_name, persona) DO UPDATE SET
        failures = failuregroup.failures + 1,
        first_seen = CASE WHEN {earlier} THEN excluded.first_seen ELSE failuregroup.first_seen END,
        first_log_id = CASE WHEN {earlier} THEN excluded.first_log_id ELSE failuregroup.first_log_id END,
        last_seen = CASE WHEN {later} THEN excluded.last_seen ELSE failuregroup.last_seen END,
        last_log_id = CASE WHEN {later} THEN excluded.last_log_id ELSE failuregroup.last_log_id END;
""".format(
    earlier="(excluded.first_seen, excluded.first_log_id) < (failuregroup.first_seen, failuregroup.first_log_id)",
    later="(excluded.last_seen, excluded.last_log_id) > (failuregroup.last_seen, failuregroup.last_log_id)",
)
_GROUP_OF_OLD = "(fingerprint, tool_name, persona) = (old.fingerprint, old.tool_name, old.persona)"
# The row that went may have been the first or the last of its group; an index finds the next one.
_UNCOUNT_GROUP = f"""
UPDATE failuregroup SET failures = failures - 1 WHERE {_GROUP_OF_OLD};
DELETE FROM failuregroup WHERE {_GROUP_OF_OLD} AND failures <= 0;
""" + "".join(
    f"""
UPDATE failuregroup SET ({end}_seen, {end}_log_id) = (
        SELECT timestamp, id FROM executionlog WHERE {_GROUP_OF_OLD} AND status = 'FAILURE'
        ORDER BY timestamp {order}, id {order} LIMIT 1
    ) WHERE {_GROUP_OF_OLD} AND {end}_log_id = old.id
    AND EXISTS (SELECT 1 FROM executionlog WHERE {_GROUP_OF_OLD} AND status = 'FAILURE');
"""
    for end, order in (("first", "ASC"), ("last", "DESC"))
)

_ENDED, _FAILED = "{row}.status <> 'RUNNING'", "{row}.status = 'FAILURE' AND {row}.fingerprint IS NOT NULL"
_FILL_DAYS = """
INSERT INTO executionday (tool_name, day, persona, revision, within_ms, runs, failures, total_us)
    SELECT {tool_day}, count(*), sum(CASE WHEN new.status = 'FAILURE' THEN 1 ELSE 0 END), sum({microseconds})
    FROM executionlog AS new WHERE new.status <> 'RUNNING' GROUP BY 1, 2, 3, 4, 5
"""
_FILL_GROUPS = """
INSERT INTO failuregroup
    (fingerprint, tool_name, persona, failures, first_seen, first_log_id, last_seen, last_log_id)
    SELECT g.fingerprint, g.tool_name, g.persona, g.failures, g.first_seen, ({first}), g.last_seen, ({last})
    FROM (SELECT fingerprint, tool_name, persona, count(*) AS failures, min(timestamp) AS first_seen,
            max(timestamp) AS last_seen
        FROM executionlog WHERE status = 'FAILURE' AND fingerprint IS NOT NULL
        GROUP BY fingerprint, tool_name, persona) AS g
""".format(
    **{
        end: "SELECT e.id FROM executionlog AS e WHERE e.fingerprint = g.fingerprint AND e.tool_name = g.tool_name"
        f" AND e.persona = g.persona AND e.status = 'FAILURE' ORDER BY e.timestamp {order}, e.id {order} LIMIT 1"
        for end, order in (("first", "ASC"), ("last", "DESC"))
    }
)


def upgrade() -> None:
    """Add `run_id` and what is derived, filled from the rows there are, then the triggers that keep it."""
    op.add_column("executionlog", sa.Column("run_id", sa.String))
    op.drop_index("ix_executionlog_fingerprint", "executionlog")
    for name, columns in (
        ("fingerprint", ["fingerprint", "timestamp"]),
        ("run", ["run_id", "timestamp"]),
        ("parent", ["parent_trace_id"]),
    ):
        where = sa.text(f"{columns[0]} IS NOT NULL")
        op.create_index(
            f"ix_executionlog_{name}", "executionlog", columns, sqlite_where=where, postgresql_where=where
        )
    # Most rows are of `default`, and cost nothing here.
    rare = sa.text("persona <> 'default'")
    op.create_index(
        "ix_executionlog_persona",
        "executionlog",
        ["persona", "timestamp"],
        sqlite_where=rare,
        postgresql_where=rare,
    )
    _tables()
    sqlite = op.get_bind().dialect.name == "sqlite"
    op.get_bind().exec_driver_sql(_spelled(_FILL_DAYS, "new", sqlite=sqlite))
    op.get_bind().exec_driver_sql(_FILL_GROUPS)
    if sqlite:
        _words_of_sqlite()
        _triggers_of_sqlite()
    else:
        _words_of_postgresql()
        _triggers_of_postgresql()


def _tables() -> None:
    time = sa.DateTime(timezone=True)
    op.create_table(
        "executionday",
        sa.Column("tool_name", sa.String, primary_key=True),
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column("persona", sa.String, primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True),
        sa.Column("within_ms", sa.Integer, primary_key=True),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("total_us", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "failuregroup",
        sa.Column("fingerprint", sa.String, primary_key=True),
        sa.Column("tool_name", sa.String, primary_key=True),
        sa.Column("persona", sa.String, primary_key=True),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("first_seen", time, nullable=False),
        sa.Column("first_log_id", sa.Integer, nullable=False),
        sa.Column("last_seen", time, nullable=False),
        sa.Column("last_log_id", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_failuregroup_seen", "failuregroup", ["last_seen"])


def _words_of_sqlite() -> None:
    execute = op.get_bind().exec_driver_sql
    execute("CREATE TABLE executionlog_fts_rows (key INTEGER PRIMARY KEY, log_id INTEGER NOT NULL)")
    execute(_FTS)
    key, facts = _KEY.format(row="e"), _FACTS.format(row="e")
    rows = "FROM executionlog AS e WHERE error_traceback IS NOT NULL"
    execute(f"INSERT OR IGNORE INTO executionlog_fts_rows (key, log_id) SELECT {key}, id {rows} ORDER BY 1")
    # In the order of the keys: any other makes FTS5 begin a new segment for each row.
    execute(
        "INSERT INTO executionlog_fts (rowid, facts, traceback) "
        f"SELECT k.key, {facts}, error_traceback FROM executionlog_fts_rows AS k "
        "JOIN executionlog AS e ON e.id = k.log_id ORDER BY k.key"
    )


def _triggers_of_sqlite() -> None:
    columns = "status, timestamp, tool_name, persona, revision, duration_ms, fingerprint"
    for name, condition, count, uncount in (
        ("day", _ENDED, _COUNT_DAY, _UNCOUNT_DAY),
        ("group", _FAILED, _COUNT_GROUP, _UNCOUNT_GROUP),
    ):
        _trigger(f"{name}_insert", "INSERT", condition, "new", count)
        _trigger(f"{name}_update_old", f"UPDATE OF {columns}", condition, "old", uncount)
        _trigger(f"{name}_update_new", f"UPDATE OF {columns}", condition, "new", count)
        _trigger(f"{name}_delete", "DELETE", condition, "old", uncount)
    filled, words = "{row}.error_traceback IS NOT NULL", "UPDATE OF error_traceback, " + columns + ", run_id"
    first = "old.error_traceback IS NULL AND new.error_traceback IS NOT NULL"
    _trigger("words_insert", "INSERT", filled, "new", _INDEX_WORDS)
    _trigger("words_first", words, first, "new", _INDEX_WORDS)
    again = _spelled(_FORGET_WORDS, "old", sqlite=True) + _spelled(_INDEX_WORDS, "new", sqlite=True)
    _trigger("words_again", words, filled, "old", again)
    _trigger("words_delete", "DELETE", filled, "old", _FORGET_WORDS)


def _trigger(name: str, event: str, condition: str, row: str, body: str) -> None:
    when = condition.format(row=row)
    op.get_bind().exec_driver_sql(
        f"CREATE TRIGGER executionlog_{name} AFTER {event} ON executionlog WHEN {when}\n"
        f"BEGIN{_spelled(body, row, sqlite=True)}END"
    )


def _words_of_postgresql() -> None:
    # Punctuation ends words here as it does in FTS5; PostgreSQL's own parser would keep paths and names whole.
    marks = """'!"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~'"""
    words = f"to_tsvector('simple', translate(left(error_traceback, 100000), {marks}, '{' ' * 32}'))"
    # As text, not for the driver as it is: psycopg would take the percent sign for a placeholder.
    op.execute(
        sa.text(
            "CREATE INDEX ix_executionlog_words ON executionlog USING gin "
            f"({words}) WHERE error_traceback IS NOT NULL"
        )
    )


def _triggers_of_postgresql() -> None:
    old, new = (
        f"IF {_ENDED.format(row=row)} THEN {_spelled(days, row, sqlite=False)} END IF;"
        f"IF {_FAILED.format(row=row)} THEN {groups} END IF;"
        for row, days, groups in (("old", _UNCOUNT_DAY, _UNCOUNT_GROUP), ("new", _COUNT_DAY, _COUNT_GROUP))
    )
    op.get_bind().exec_driver_sql(
        "CREATE FUNCTION healkit_log_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n"
        f"IF TG_OP <> 'INSERT' THEN {old} END IF;\nIF TG_OP <> 'DELETE' THEN {new} END IF;\n"
        "RETURN NULL; END $$"
    )
    columns = "status, timestamp, tool_name, persona, revision, duration_ms, fingerprint"
    op.get_bind().exec_driver_sql(
        f"CREATE TRIGGER executionlog_changed AFTER INSERT OR DELETE OR UPDATE OF {columns} ON executionlog "
        "FOR EACH ROW EXECUTE FUNCTION healkit_log_changed()"
    )


def _spelled(sql: str, row: str, *, sqlite: bool) -> str:
    """Write the statement for that row and dialect."""
    day = f"substr({row}.timestamp, 1, 10)" if sqlite else f"CAST({row}.timestamp AT TIME ZONE 'UTC' AS date)"
    whole = "CAST({} AS INTEGER)" if sqlite else "CAST(trunc(CAST({} AS numeric)) AS bigint)"
    within = " ".join(f"WHEN {row}.duration_ms <= {end} THEN {end}" for end in _ENDS)
    within = f"CASE WHEN {row}.duration_ms IS NULL THEN 0 {within} ELSE 2000000000 END"
    words = {
        "tool_day": f"{row}.tool_name, {day}, {row}.persona, coalesce({row}.revision, 0), {within}",
        "microseconds": whole.format(f"coalesce({row}.duration_ms, 0) * 1000"),
        "key": _KEY.format(row=row),
        "facts": _FACTS.format(row=row),
    }
    for name, written in words.items():
        sql = sql.replace("{" + name + "}", written)
    return sql
