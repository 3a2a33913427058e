"""Audit: decisions in a chain that shows every later change.

Decision loops, healings and notebooks append to one table. A trigger prevents changing or removing its rows. A person
who can drop the trigger can still change a row. `verify` detects that by the chain. It detects entries that were cut
off the end by the heads in the manifests of runs.

Appending takes one transaction that writes from its beginning, so the numbers have no gap, even with several writers.
Retention and archiving do not change the audit.
"""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack, get_args

import msgspec

from healkit.core.contracts.execution import escaped, utc_now
from healkit.core.runtime.contents import MentionedView
from healkit.core.secrets.cleaner import Cleaner, Verbatim, clean_bounded
from healkit.core.store.database import Database, mapped
from healkit.core.store.log_writer import LogWriter
from healkit.core.store.statements import prepared, sqlite_time
from healkit.errors import AuditEntryInvalid, check_text
from healkit.parts.runs.audit_records import (
    AnchoredHead,
    AuditEntry,
    AuditFault,
    AuditHead,
    AuditMetadata,
    AuditStep,
    AuditSummary,
    AuditVerification,
    ExecutionType,
    FaultKind,
    Mentioned,
)

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


#: Rows that are read at once.
_PAGE = 5_000
#: Entries that one page of executions is looked for in: no index knows their kind.
_SEARCHED = 100_000
#: The key of PostgreSQL's advisory lock that appends take turns by ("audt" in ASCII).
_ADVISORY_KEY = 0x61756474

#: Columns that are hashed, in this order, behind the hash of the entry before.
HASHED = (
    "execution_id", "execution_type", "seq", "timestamp", "choice_type", "tool_name", "tool_params", "metadata",
    "description", "run_id", "event_seq",
)  # fmt: skip
#: In the place of a run's id: a head that a person kept, and not a run's manifest.
KEPT_ELSEWHERE = ""
COLUMNS = ("id", *HASHED, "previous_hash", "hash")

_INSERT = (
    f"INSERT INTO traceauditentry ({', '.join(COLUMNS)}) "  # noqa: S608 - our own column names
    f"VALUES ({', '.join(f':{name}' for name in COLUMNS)})"
)
_HEAD = """SELECT chain, id, hash FROM traceauditchain
    LEFT JOIN (SELECT id, hash FROM traceauditentry ORDER BY id DESC LIMIT 1) AS last ON 1 = 1"""
_LAST_SEQ = "SELECT max(seq) FROM traceauditentry WHERE execution_id = :execution_id"
_LAST_AND_SEQ = f"SELECT id, hash, ({_LAST_SEQ}) FROM traceauditentry ORDER BY id DESC LIMIT 1"  # noqa: S608 - ours
_CHAIN = "SELECT chain FROM traceauditchain"
_OF_EXECUTION = "SELECT * FROM traceauditentry WHERE execution_id = :execution_id ORDER BY seq"
_LAST_OF = "SELECT * FROM traceauditentry WHERE execution_id = :execution_id ORDER BY seq DESC LIMIT 1"
_BEGUN = """SELECT * FROM traceauditentry WHERE id < :before AND id >= :start AND seq = 1 AND execution_type = :kind
    ORDER BY id DESC LIMIT :limit"""
_SUMMED = """SELECT id, execution_id, choice_type, tool_name, metadata, timestamp FROM traceauditentry
    WHERE id > :after{which} ORDER BY id LIMIT :limit"""
#: A time as text, as SQLite holds it and as it is hashed.
_TIME_TEXT, _TIME_FORM = "to_char(timestamp AT TIME ZONE 'UTC', :form)", "YYYY-MM-DD HH24:MI:SS.US"
_WALKED = "SELECT {columns} FROM traceauditentry WHERE id > :after ORDER BY id LIMIT :limit"


class AuditFacts(TypedDict, total=False):
    """Optional facts of an entry; the fields are those of `AuditStep`."""

    tool_name: str
    tool_params: object
    description: str
    run_id: str | None
    event_seq: int | None


class Audit:
    """Audit of one database; `hk.audit`. Several threads and processes may append.

    cleaner: Hides secrets in the kept data of an entry; called with the first one.
    anchored: Reads the heads that the manifests of runs name.
    outside: Compares entries with the run folders and the files of views, and reports differences.

    All methods raise `DatabaseError`s.

    Example:
    >>> hk.audit.verify().ok
    True
    """

    def __init__(
        self,
        database: Database,
        cleaner: Callable[[], Cleaner],
        anchored: Callable[[], Iterable[AnchoredHead]] = tuple,
        outside: Callable[[Mentioned], Iterable[AuditFault]] = lambda _: (),
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
        metadata: AuditMetadata | Mapping[str, Any] | None = None,
        **facts: Unpack[AuditFacts],
    ) -> AuditEntry:
        """Append one entry, and return it with its number, its position in the chain and its hash.

        metadata: Counts, codes and durations, as `AuditMetadata` or a dict with its names on the wire (`rowCount`).
        facts: `tool_name`; `tool_params`, the tool's arguments, with secrets redacted and cut at 4 KB; `description`, a
            sentence made by code, by default from the other fields; `run_id` and `event_seq`, the same event in a run
            folder.

        Raises `AuditEntryInvalid` for an invalid field; then nothing is appended.

        Example:
        >>> entry = hk.audit.append("review-1", "chat", "plan_made", description="3 steps planned.")
        >>> entry.seq, entry.description
        (1, '3 steps planned.')
        """
        known = metadata_of(metadata)
        return self.extend([AuditStep(execution_id, execution_type, choice_type, metadata=known, **facts)])[0]

    def extend(self, steps: Sequence[AuditStep], wait_s: float | None = None) -> list[AuditEntry]:
        """Append several entries in one transaction, all or none; raise as `append` does.

        wait_s: How long to wait for another writer, by default as long as the database's other writes.

        Example:
        >>> from healkit.parts.runs.audit_records import AuditStep
        >>> steps = [AuditStep("review-2", "chat", kind) for kind in ("plan_made", "plan_followed")]
        >>> [(entry.seq, entry.choice_type) for entry in hk.audit.extend(steps)]
        [(1, 'plan_made'), (2, 'plan_followed')]
        """
        stored = [columns_of(step, self._cleaner) for step in steps]
        if not stored:
            return []
        self._writer.transaction(lambda cursor: self._write(cursor, stored), wait_s)
        return [entry_of(row) for row in stored]

    def extend_within(self, session: Session, steps: Sequence[AuditStep]) -> None:
        """Append entries in a store transaction that writes from its beginning; raise as `append` does."""
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
        """Return the entries of one execution, in their order; none for an unknown one.

        Example:
        >>> _ = hk.audit.append("review-3", "chat", "plan_made")
        >>> [entry.choice_type for entry in hk.audit.get("review-3")]
        ['plan_made']
        """
        check_text("execution_id", execution_id)
        return [entry_of(row) for row in self._database.fetch(_OF_EXECUTION, execution_id=execution_id)]

    def last(self, execution_id: str) -> AuditEntry | None:
        """Return the newest entry of one execution; None for an unknown one.

        Example:
        >>> _ = hk.audit.append("review-4", "chat", "plan_made")
        >>> hk.audit.last("review-4").choice_type
        'plan_made'
        """
        rows = self._database.fetch(_LAST_OF, execution_id=execution_id)
        return entry_of(rows[0]) if rows else None

    def begun(
        self, kind: ExecutionType, *, limit: int = 50, before: int | None = None
    ) -> tuple[list[AuditEntry], int | None]:
        """Return the first entries of the newest executions of that kind, and the `before` value for older ones.

        One call searches a bounded number of entries. It may return fewer than `limit`, and still say where to
        continue. None says that there are no older ones.

        Example:
        >>> _ = hk.audit.append("game-1", "tree", "plan_made")
        >>> entries, older = hk.audit.begun("tree", limit=1)
        >>> [entry.execution_id for entry in entries]
        ['game-1']
        """
        end = self.head().entries + 1 if before is None else before
        start = max(end - _SEARCHED, 1)
        bounds = {"before": end, "start": start, "kind": kind, "limit": limit}
        entries = [entry_of(row) for row in self._database.fetch(_BEGUN, **bounds)]
        older = entries[-1].position if len(entries) == limit else start
        return entries, older if older > 1 else None

    def summary(self, execution_id: str | None = None) -> AuditSummary:
        """Sum up one execution, or the whole audit: entries by choice, corrections, failures, duration, tools.

        Example:
        >>> _ = hk.audit.append("review-5", "chat", "plan_made")
        >>> hk.audit.summary("review-5").by_choice
        {'plan_made': 1}
        """
        if execution_id is not None:
            check_text("execution_id", execution_id)
        return summed(self._summed(execution_id))

    def verify(self, head: AuditHead | None = None) -> AuditVerification:
        """Check every entry, and return the first that was changed, removed, moved or cut off, if any.

        head: A head that `head` returned earlier, kept elsewhere; it must be part of the chain.

        The heads in the manifests of runs are checked too. Then it checks whether each event of a run's folder that
        makes an entry has one. Last come the files that entries name: those of views, evidence and outputs. If the
        manifests no longer exist either, it does not detect entries that were cut off the end, nor a completely
        rewritten chain.

        Example:
        >>> kept = hk.audit.head()
        >>> print(hk.audit.verify(kept))
        ✓ No entry was changed or removed. Entries: ...
        """
        anchored = list(
            self._anchored()
        )  # first: a run that ends meanwhile has a head beyond what is read below
        chains = [row["chain"] for row in self._database.fetch(_CHAIN)]
        external_heads = [] if head is None else [AnchoredHead(KEPT_ELSEWHERE, head)]
        walk = ChainWalk(chains[0] if len(chains) == 1 else None, [*anchored, *external_heads])
        mentioned = Mentioned({anchor.run_id for anchor in anchored})
        with closing(self._walked()) as pages:
            for page in pages:
                if (fault := walk.step(page)) is not None:
                    return walk.result(fault)
                mention(mentioned, page)
        mentioned.last = walk.position
        return walk.result(walk.end() or next(iter(self._outside(mentioned)), None))

    def head(self) -> AuditHead:
        """Return the current end of the chain: its number of `entries` and the `hash` of the last one.

        Example:
        >>> head = hk.audit.head()
        >>> hk.audit.verify(head).ok
        True
        """
        (row,) = self._database.fetch(_HEAD)
        return AuditHead(row["chain"], row["id"] or 0, row["hash"] or row["chain"])

    def close(self) -> None:
        """Close the connection; a later entry opens a new one.

        Example:
        >>> hk.audit.close()
        >>> hk.audit.append("review-6", "chat", "plan_made").seq
        1
        """
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

    def _summed(self, execution_id: str | None) -> Iterator[CountedEntry]:
        which = "" if execution_id is None else " AND execution_id = :execution_id"
        values = {} if execution_id is None else {"execution_id": execution_id}
        after = 0
        while rows := self._database.fetch(_SUMMED.format(which=which), after=after, limit=_PAGE, **values):
            for row in rows:
                metadata = msgspec.json.decode(row["metadata"], type=AuditMetadata)
                counted = (
                    row["execution_id"],
                    row["choice_type"],
                    row["tool_name"],
                    metadata,
                    row["timestamp"],
                )
                yield CountedEntry(*counted)
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


def _page_of(connection: Any, sql: str, values: dict[str, Any] | list[Any]) -> list[tuple[Any, ...]]:
    """Return a page of rows. A text that is not UTF-8, which SQLite's driver refuses, is a changed entry."""
    with closing(connection.cursor()) as cursor:
        try:
            rows: list[tuple[Any, ...]] = cursor.execute(sql, values).fetchall()
        except sqlite3.OperationalError:
            connection.text_factory = lambda stored: stored.decode(errors="surrogateescape")
            rows = cursor.execute(sql, values).fetchall()
        return rows


# Rows are made of a step, and read as an entry. What a step brings is cleaned and bounded here, because no entry is
# ever changed or removed. Its parameters and metadata are stored as texts of JSON: what is hashed is what is stored,
# byte by byte.


#: Limit of what an entry keeps of its parameters and states, in bytes of JSON: no entry is ever removed.
PAYLOAD_MAX_BYTES = 4_096
_DESCRIPTION_MAX_CHARS, _NAME_MAX_CHARS = 1_000, 400
#: Columns of `unique_values` that are kept.
_COLUMNS_MAX = 100

_VERBATIM = Verbatim()
_encode = msgspec.json.Encoder().encode


def columns_of(step: AuditStep, cleaner: Callable[[], Cleaner]) -> dict[str, Any]:
    """Return the columns of a step that do not depend on its position; raise `AuditEntryInvalid`."""
    try:
        checked = msgspec.convert(msgspec.structs.asdict(step), AuditStep)
        params, metadata, description = _cleaned(step, cleaner)
        params_json, metadata_json = _encode({} if params is None else params), _encode(metadata)
        msgspec.json.decode(metadata_json, type=AuditMetadata)
    except (msgspec.ValidationError, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise _invalid(str(error)) from None
    tool_name = escaped(checked.tool_name)[:_NAME_MAX_CHARS]
    described = description or _described(checked.choice_type, tool_name, metadata)
    return {
        "execution_id": checked.execution_id,
        "execution_type": checked.execution_type,
        "timestamp": checked.timestamp or utc_now(),
        "choice_type": checked.choice_type,
        "tool_name": tool_name,
        "tool_params": params_json.decode(),
        "metadata": metadata_json.decode(),
        "description": escaped(described)[:_DESCRIPTION_MAX_CHARS],
        "run_id": None if checked.run_id is None else escaped(checked.run_id)[:_NAME_MAX_CHARS],
        "event_seq": checked.event_seq,
    }


def _cleaned(step: AuditStep, make_cleaner: Callable[[], Cleaner]) -> tuple[Any, AuditMetadata, str]:
    """Return parameters, metadata and description without secrets; each is cut at its limit."""
    is_short = _is_short(step)
    has_payload = is_short and (step.tool_params or step.description or step.metadata != AuditMetadata())
    if is_short and (step.is_clean or not has_payload):
        return step.tool_params, step.metadata, step.description
    raw, cleaner = step.metadata, _VERBATIM if step.is_clean else make_cleaner()
    counts = dict(itertools.islice((raw.unique_values or {}).items(), _COLUMNS_MAX))
    parts = [step.tool_params, raw.intended_state, raw.actual_state, raw.error_message, step.description]
    parts.append(list(counts))
    together = (
        cleaner.clean(parts, limit_bytes=PAYLOAD_MAX_BYTES)
        if is_short
        else clean_bounded(cleaner, parts, PAYLOAD_MAX_BYTES)
    )
    is_cut = together.truncated_from is not None or not isinstance(together.value, list)
    clean = [_clean_alone(cleaner, part) for part in parts] if is_cut else together.value
    params, intended, actual, message, description, names = clean
    metadata = msgspec.structs.replace(
        raw,
        intended_state=_as_object(intended),
        actual_state=_as_object(actual),
        error_message=message,
        unique_values=dict(zip(names, counts.values(), strict=True)) or None,
    )
    return params, metadata, description


def _clean_alone(cleaner: Cleaner, part: object) -> Any:
    if isinstance(part, list) and part:  # names of columns, or parameters that are not an object
        share = max(_NAME_MAX_CHARS, PAYLOAD_MAX_BYTES // len(part))
        return [clean_bounded(cleaner, item, share).value for item in part[:_COLUMNS_MAX]]
    return clean_bounded(cleaner, part, PAYLOAD_MAX_BYTES).value


def _is_short(step: AuditStep) -> bool:
    """Return True for a step within all limits; nearly all are."""
    try:
        return (
            len(step.metadata.unique_values or ()) <= _COLUMNS_MAX
            and len(_encode((step.tool_params, step.metadata, step.description))) <= PAYLOAD_MAX_BYTES
        )
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return False


def entry_of(row: Mapping[str, Any]) -> AuditEntry:
    """Return a row with its JSON texts decoded."""
    fields = {name: row[name] for name in COLUMNS if name not in {"id", "tool_params", "metadata"}}
    return AuditEntry(
        position=row["id"],
        tool_params=msgspec.json.decode(row["tool_params"]),
        metadata=msgspec.json.decode(row["metadata"], type=AuditMetadata),
        **fields,
    )


class CountedEntry(NamedTuple):
    """Part of an entry that a summary counts."""

    execution_id: str
    choice_type: str
    tool_name: str
    metadata: AuditMetadata
    timestamp: datetime


def summed(entries: Iterable[AuditEntry | CountedEntry]) -> AuditSummary:
    """Sum up entries: how many by choice, corrections, failures, duration, tools."""
    executions: set[str] = set()
    choices: Counter[str] = Counter()
    tools: set[str] = set()
    corrections = failed_corrections = failures = 0
    duration_ms = 0.0
    first: datetime | None = None
    last: datetime | None = None
    for entry in entries:
        metadata, time = entry.metadata, entry.timestamp
        executions.add(entry.execution_id)
        choices[entry.choice_type] += 1
        tools.add(entry.tool_name)
        corrections += metadata.correction_applied is True
        failed_corrections += metadata.correction_applied is False
        failures += metadata.success is False
        duration_ms += metadata.duration_ms or 0.0
        first, last = min(first or time, time), max(last or time, time)
    return AuditSummary(
        len(executions),
        choices.total(),
        dict(choices.most_common()),
        corrections,
        failed_corrections,
        failures,
        round(duration_ms, 3),
        sorted(tools - {""}),
        first,
        last,
    )


def metadata_of(given: AuditMetadata | Mapping[str, Any] | None) -> AuditMetadata:
    """Return metadata with names on the wire as `AuditMetadata`; raise `AuditEntryInvalid`."""
    if isinstance(given, AuditMetadata):
        return given
    try:
        return msgspec.convert({} if given is None else dict(given), AuditMetadata)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise _invalid(f"metadata: {error}") from None


def mention(mentioned: Mentioned, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add the things that rows of `COLUMNS` name; the rows are valid."""
    for row in rows:
        position, execution_id, run_id, event_seq, metadata_json = row[0], row[1], row[10], row[11], row[8]
        is_here = run_id in mentioned.runs
        if is_here and event_seq is not None:
            mentioned.events.setdefault(run_id, {})[event_seq] = position, _time_of(row)
        if '"viewFiles"' not in metadata_json and '"runFiles"' not in metadata_json:
            continue
        metadata = msgspec.json.decode(metadata_json, type=AuditMetadata)
        for name, sha256 in (metadata.run_files or {}).items() if is_here else ():
            mentioned.files.setdefault(run_id, {}).setdefault(name, (sha256, position))
        for name, file_name in (metadata.view_files or {}).items():
            view = MentionedView(name, file_name, position, execution_id, _time_of(row))
            mentioned.views.setdefault((name, file_name), view)


def _time_of(row: tuple[Any, ...]) -> datetime:
    return datetime.fromisoformat(row[4]).replace(tzinfo=UTC)


def _invalid(said: str) -> AuditEntryInvalid:
    kinds = ", ".join(get_args(ExecutionType))
    return AuditEntryInvalid(
        f"This is not an audit entry: {said}.", hint=f"Nothing was appended. An execution is one of {kinds}."
    )


def _as_object(cleaned: object) -> dict[str, Any] | None:
    """Return a cleaned object; one that was too long is now text, kept under one name."""
    return cleaned if cleaned is None or isinstance(cleaned, dict) else {"…": cleaned}


def _described(choice_type: str, tool_name: str, known: AuditMetadata) -> str:
    """Make a sentence of a step's fields."""
    with_tool = f" with {tool_name}" if tool_name else ""
    ended = {None: "", True: ": done", False: ": failed"}[known.success]
    facts = [known.error_message] if known.error_message else []
    facts += [] if known.row_count is None else [f"{known.row_count:,} rows"]
    facts += [] if known.column_count is None else [f"{known.column_count:,} columns"]
    facts += [] if known.duration_ms is None else [f"{known.duration_ms:,.1f} ms"]
    in_brackets = f" ({', '.join(facts)})" if facts else ""
    return f"{choice_type.replace('_', ' ')}{with_tool}{ended}{in_brackets}."


# The chain.
#
# An entry's hash is the SHA-256 of a JSON array: the hash of the entry before it, then the entry's own columns as they
# are stored (`HASHED`). The array has no spaces, and no escapes for letters that UTF-8 has. The first entry follows the
# chain's id, which is random and was made with the table. docs/audit.md has the rule as a few lines of Python.
#
# There is one chain for the whole table, and not one for each execution. A chain for each execution could not show that
# a whole execution was removed. The manifest of a run would cover only its own entries. With one chain, each manifest
# also covers every entry before it. The price is that appends queue, but all of healkit's writes do that anyway.


_sha256 = hashlib.sha256


def entry_hash(previous_hash: str, hashed: Iterable[Any]) -> str:
    """Return the hash of the entry with those values of `HASHED`; a time is a text as SQLite stores it."""
    return _sha256(_encode([previous_hash, *hashed])).hexdigest()


class ChainWalk:
    """Walk along a chain from its id; `step` takes rows of `COLUMNS` in the order of their ids.

    anchored: The heads that runs' manifests name.
    """

    def __init__(self, chain: str | None, anchored: Iterable[AnchoredHead]) -> None:
        self.position = 0
        self._chain = chain
        self._previous: object = chain
        self._seqs: dict[Any, int] = {}
        self._anchors: dict[int, list[AnchoredHead]] = {}
        self._foreign: set[str] = set()
        self._is_other = False
        self._many_anchors = 0
        for anchor in anchored:
            kept_elsewhere = anchor.run_id == KEPT_ELSEWHERE
            if anchor.head.chain == chain:
                self._anchors.setdefault(anchor.head.entries, []).append(anchor)
                self._many_anchors += not kept_elsewhere
            elif kept_elsewhere:
                self._is_other = True
            else:
                self._foreign.add(anchor.run_id)

    def step(self, rows: Iterable[tuple[Any, ...]]) -> AuditFault | None:
        """Continue along these rows; return the first invalid one."""
        position, previous, seqs, anchors = self.position, self._previous, self._seqs, self._anchors
        special = anchors.keys() | self._foreign
        for row in rows:
            position += 1
            execution_id = row[1]
            seqs[execution_id] = seq = seqs.get(execution_id, 0) + 1
            in_place = row[0] == position and row[3] == seq and row[12] == previous and _fits(row)
            if not in_place or position in special or execution_id in special:
                fault = self._fault(row, position, previous, seq)
                if fault is not None:
                    return fault
            previous = row[13]
        self.position, self._previous = position, previous
        return None

    def end(self) -> AuditFault | None:
        """Return what is wrong after the last row."""
        if self._chain is None:
            return AuditFault("rewritten", 1, "The id of the chain is missing, or there is more than one.")
        if self._is_other:
            return AuditFault(
                "rewritten", 1, "The chain does not have the id of the head that was kept elsewhere."
            )
        beyond = [(entries, anchors) for entries, anchors in self._anchors.items() if entries > self.position]
        if not beyond:
            return None
        entries, anchors = max(beyond, key=lambda found: found[0])
        message = f"{_named_head(anchors[0])} says {entries:,}"
        message = f"The audit has {self.position:,} entries, but {message}: the last ones were removed."
        return AuditFault("cut_off", self.position + 1, message)

    def result(self, fault: AuditFault | None) -> AuditVerification:
        """Return the result of the walk so far."""
        whole = self._chain is not None and fault is None
        head = AuditHead(str(self._chain), self.position, str(self._previous)) if whole else None
        return AuditVerification(self.position, head, self._many_anchors, len(self._foreign), fault)

    def _fault(self, row: tuple[Any, ...], position: int, previous: object, seq: int) -> AuditFault | None:
        """Say what is wrong with a row, the cause before its consequences; None for nothing."""
        kind: FaultKind
        if row[0] < position:
            kind, problem = "reordered", "the chain must begin with entry 1"
        elif row[0] > position:
            many = (
                f"entry {position:,} is"
                if row[0] == position + 1
                else f"entries {position:,} to {row[0] - 1:,} are"
            )
            kind, problem = "missing", f"{many} missing before it"
        elif not _fits(row):
            kind, problem = "changed", "it does not match its hash, so it was changed"
        elif row[12] != previous:
            kind, problem = (
                "reordered",
                "it does not follow the entry before it, which was changed, removed or moved",
            )
        elif row[3] != seq:
            kind, problem = "missing", f"it has number {row[3]!r} of its execution, but {seq} is next"
        elif (
            wrong := next((a for a in self._anchors.get(position, ()) if a.head.hash != row[13]), None)
        ) is not None:
            kind, problem = "rewritten", f"{_named_head(wrong)} has another hash for it"
        elif row[1] in self._foreign:
            kind, problem = "rewritten", f"the manifest of run {row[1]!r} names another chain"
        else:
            return None
        return AuditFault(kind, position, f"{_named(row)}: {problem}.", str(row[1]), _number(row[3]))


def _fits(row: tuple[Any, ...]) -> bool:
    """Return True if a row has the hash that it states, whatever its content."""
    try:
        return bool(_sha256(_encode([row[12], *row[1:12]])).hexdigest() == row[13])
    except (TypeError, ValueError, OverflowError):  # a value of a kind that is never stored
        return False


def _named_head(anchor: AnchoredHead) -> str:
    kept_elsewhere = anchor.run_id == KEPT_ELSEWHERE
    return "the head that was kept elsewhere" if kept_elsewhere else f"the manifest of run {anchor.run_id!r}"


def _named(row: tuple[Any, ...]) -> str:
    return f"Entry {row[0]!r} (number {row[3]!r} of {row[1]!r}, {row[5]!r})"


def _number(seq: object) -> int | None:
    return seq if isinstance(seq, int) else None
