"""Audit: decisions in a chain that shows every later change.

Decision loops, healings and notebooks append to one table, and a trigger keeps anybody from changing or removing what
is there. Who can drop the trigger can change a row all the same; `verify` finds that by the chain (`audit_chain`), and
what was cut off its end by the heads that are kept in the manifests of runs.

Appending takes one transaction that writes from its beginning, so that the numbers have no gap, whoever else appends.
Retention and archiving leave the audit alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from healkit.contracts.audit import (
    AnchoredHead,
    AuditEntry,
    AuditFault,
    AuditHead,
    AuditMetadata,
    AuditStep,
    AuditSummary,
    AuditVerification,
    ExecutionType,
    MentionedFacts,
)
from healkit.errors import check_text
from healkit.sanitizer.cleaner import Cleaner
from healkit.store.audit_chain import COLUMNS, HASHED, KEPT_ELSEWHERE, ChainWalk, entry_hash
from healkit.store.audit_rows import Mentioned, columns_of, counted_of, entry_of, metadata_of, summed
from healkit.store.database import Database
from healkit.store.database_errors import mapped
from healkit.store.log_writer import LogWriter
from healkit.store.statements import prepared, sqlite_time

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

#: Rows that are read at once.
_PAGE = 5_000
#: The key of PostgreSQL's advisory lock that appends take turns by ("audt" in ASCII).
_ADVISORY_KEY = 0x61756474

_INSERT = (
    f"INSERT INTO traceauditentry ({', '.join(COLUMNS)}) "  # noqa: S608 - names of ours
    f"VALUES ({', '.join(f':{name}' for name in COLUMNS)})"
)
_HEAD = """SELECT chain, id, hash FROM traceauditchain
    LEFT JOIN (SELECT id, hash FROM traceauditentry ORDER BY id DESC LIMIT 1) AS last ON 1 = 1"""
_LAST_SEQ = "SELECT max(seq) FROM traceauditentry WHERE execution_id = :execution_id"
_LAST_AND_SEQ = f"SELECT id, hash, ({_LAST_SEQ}) FROM traceauditentry ORDER BY id DESC LIMIT 1"  # noqa: S608 - ours
_CHAIN = "SELECT chain FROM traceauditchain"
_OF_EXECUTION = "SELECT * FROM traceauditentry WHERE execution_id = :execution_id ORDER BY seq"
_SUMMED = """SELECT id, execution_id, choice_type, tool_name, metadata, timestamp FROM traceauditentry
    WHERE id > :after{which} ORDER BY id LIMIT :limit"""
#: A time as text, as SQLite holds it and as it is hashed.
_TIME_TEXT, _TIME_FORM = "to_char(timestamp AT TIME ZONE 'UTC', :form)", "YYYY-MM-DD HH24:MI:SS.US"
_WALKED = "SELECT {columns} FROM traceauditentry WHERE id > :after ORDER BY id LIMIT :limit"


class Audit:
    """Audit of one database; `hk.audit`. Several threads and processes may append.

    cleaner: hides secrets in what an entry keeps; called with the first one. anchored: reads the heads that the
    manifests of runs name. outside: compares what entries name with the run folders and the files of views, and returns
    the first that is not as it was. All methods raise `DatabaseError`s.
    """

    def __init__(
        self,
        database: Database,
        cleaner: Callable[[], Cleaner],
        anchored: Callable[[], Iterable[AnchoredHead]] = tuple,
        outside: Callable[[MentionedFacts], AuditFault | None] = lambda _: None,
    ) -> None:
        self._database = database
        self._cleaner = cleaner
        self._anchored = anchored
        self._outside = outside
        self._writer = LogWriter(database)
        self._insert = prepared(database.dialect_name, _INSERT)
        self._last = prepared(database.dialect_name, _LAST_AND_SEQ)
        self._last_seq = prepared(database.dialect_name, _LAST_SEQ)

    def append(
        self,
        execution_id: str,
        execution_type: ExecutionType,
        choice_type: str,
        *,
        tool_name: str = "",
        tool_params: Any = None,
        metadata: AuditMetadata | Mapping[str, Any] | None = None,
        description: str = "",
        run_id: str | None = None,
        event_seq: int | None = None,
    ) -> AuditEntry:
        """Append one entry, and return it with its number, its place in the chain and its hash.

        tool_params: the tool's arguments; secrets are redacted, and what is longer than 4 KB is cut.
        metadata: counts, codes and durations, as `AuditMetadata` or a dict with its names on the wire (`rowCount`).
        description: a sentence made by code; by default one is made of the other fields.
        run_id, event_seq: the event of a run folder that says the same.

        Raises `AuditEntryInvalid` for a field that is wrong; nothing is appended then.
        """
        step = AuditStep(
            execution_id,
            execution_type,
            choice_type,
            tool_name,
            tool_params,
            metadata_of(metadata),
            description,
            run_id,
            event_seq,
        )
        return self.extend([step])[0]

    def extend(self, steps: Sequence[AuditStep], wait_s: float | None = None) -> list[AuditEntry]:
        """Append several entries in one transaction, all or none; raise as `append` does.

        wait_s: how long to wait for another writer, by default as long as the database's other writes.
        """
        stored = [columns_of(step, self._cleaner) for step in steps]
        if not stored:
            return []
        self._writer.transaction(lambda cursor: self._write(cursor, stored), wait_s)
        return [entry_of(row) for row in stored]

    def extend_within(self, session: Session, steps: Sequence[AuditStep]) -> None:
        """Append entries in a transaction of the store's that writes from its beginning; raise as `append` does."""
        if not steps:
            return
        stored = [columns_of(step, self._cleaner) for step in steps]
        database = self._database
        raw = session.connection().connection
        with (
            mapped(database.where, database.path, also=(database.driver.Error,)),
            closing(raw.cursor()) as cursor,
        ):
            self._write(cursor, stored)

    def get(self, execution_id: str) -> list[AuditEntry]:
        """Return the entries of one execution, in their order; none for an unknown one."""
        check_text("execution_id", execution_id)
        return [entry_of(row) for row in self._database.fetch(_OF_EXECUTION, execution_id=execution_id)]

    def summary(self, execution_id: str | None = None) -> AuditSummary:
        """Sum up one execution, or the whole audit: entries by choice, corrections, failures, duration, tools."""
        if execution_id is not None:
            check_text("execution_id", execution_id)
        return summed(counted_of(row) for row in self._summed(execution_id))

    def verify(self, head: AuditHead | None = None) -> AuditVerification:
        """Check every entry, and return the first that was changed, removed, moved or cut off, if any.

        head: one that `head` returned earlier, kept elsewhere; it must be a part of the chain.

        The heads in the manifests of runs are checked too, then whether each event of a run's folder that makes an
        entry has one, and last the files that entries name: those of views, evidence and outputs. Where the manifests
        are gone too, entries that were cut off the end are not missed, nor a chain that was written anew as a whole.
        """
        anchored = list(
            self._anchored()
        )  # first: a run that ends meanwhile has a head beyond what is read below
        chains = [row["chain"] for row in self._database.fetch(_CHAIN)]
        kept = [] if head is None else [AnchoredHead(KEPT_ELSEWHERE, head)]
        walk = ChainWalk(chains[0] if len(chains) == 1 else None, [*anchored, *kept])
        mentioned = Mentioned({anchor.run_id for anchor in anchored})
        fault: AuditFault | None = None
        with closing(self._walked()) as pages:
            for page in pages:
                if (fault := walk.step(page)) is not None:
                    break
                mentioned.take(page)
        if fault is None and (fault := walk.end()) is None:
            fault = self._outside(mentioned.facts(walk.position))
        return walk.result(fault)

    def head(self) -> AuditHead:
        """Return the end of the chain as it is now."""
        (found,) = self._database.fetch(_HEAD)
        return AuditHead(found["chain"], found["id"] or 0, found["hash"] or found["chain"])

    def close(self) -> None:
        """Give the connection back; an entry that is appended later opens one for itself."""
        self._writer.close()

    def _write(self, cursor: Any, stored: list[dict[str, Any]]) -> None:
        """Give the entries their numbers and hashes and insert them; called within a transaction that writes."""
        if self._database.path is None:
            cursor.execute(f"SELECT pg_advisory_xact_lock({_ADVISORY_KEY})")
        first = stored[0]["execution_id"]
        cursor.execute(self._last.sql, self._last.bind({"execution_id": first}))
        last = cursor.fetchone()
        if last is None:
            cursor.execute(_CHAIN)
            last = (0, cursor.fetchone()[0], None)
        position, previous, seq = last
        seqs: dict[str, int] = {first: seq or 0}
        for row in stored:
            execution_id = row["execution_id"]
            if execution_id not in seqs:
                cursor.execute(self._last_seq.sql, self._last_seq.bind({"execution_id": execution_id}))
                seqs[execution_id] = cursor.fetchone()[0] or 0
            seqs[execution_id] += 1
            position += 1
            row |= {"id": position, "seq": seqs[execution_id], "previous_hash": previous}
            moment = sqlite_time(row["timestamp"])
            hashed = [moment if name == "timestamp" else row[name] for name in HASHED]
            previous = row["hash"] = entry_hash(previous, hashed)
        cursor.executemany(self._insert.sql, [self._insert.bind(row) for row in stored])

    def _summed(self, execution_id: str | None) -> Iterator[dict[str, Any]]:
        which = "" if execution_id is None else " AND execution_id = :execution_id"
        values = {} if execution_id is None else {"execution_id": execution_id}
        after = 0
        while rows := self._database.fetch(_SUMMED.format(which=which), after=after, limit=_PAGE, **values):
            yield from rows
            after = rows[-1]["id"]

    def _walked(self) -> Generator[list[tuple[Any, ...]]]:
        """Yield all rows by pages, as they are stored."""
        database = self._database
        on_sqlite = database.path is not None
        columns = ", ".join(_TIME_TEXT if name == "timestamp" and not on_sqlite else name for name in COLUMNS)
        page = prepared(database.dialect_name, _WALKED.format(columns=columns))
        values, after = {"limit": _PAGE, "form": _TIME_FORM}, -(1 << 62)
        errors = mapped(database.where, database.path, also=(database.driver.Error,))
        with errors, closing(database.detached_connection()) as connection:
            while rows := _page_of(connection, page.sql, page.bind({**values, "after": after})):
                yield rows
                after = rows[-1][0]


def _page_of(connection: Any, sql: str, values: Any) -> list[tuple[Any, ...]]:
    """Return a page of rows. A text that is not UTF-8, which SQLite's driver refuses, is a changed entry."""
    with closing(connection.cursor()) as cursor:
        try:
            rows: list[tuple[Any, ...]] = cursor.execute(sql, values).fetchall()
        except sqlite3.OperationalError:
            connection.text_factory = lambda stored: stored.decode(errors="surrogateescape")
            rows = cursor.execute(sql, values).fetchall()
        return rows
