"""Seeding: debug tools, samples and the gallery, added once.

Seeding again changes nothing: existing tools are kept, with all changes. `reset` restores the shipped code of the
gallery and the samples by a new revision, so that a reset does not lose a student's work. The tables of sample data are
created again, because they contain no work.

The debug tools are healkit's own code. A database with an older version of one gets the newer version, unless it was
patched later.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Column, Connection, Date, Float, Integer, MetaData, Table, Text, inspect

from healkit.core.contracts.vault import VaultEntry
from healkit.core.rendering import plain
from healkit.core.runtime.providers import BUILTIN_TOOLS
from healkit.core.store.database import Database, resolve_url
from healkit.core.store.entries import code_hash
from healkit.core.store.vault import Vault
from healkit.errors import HealkitError, ToolExists, ToolRemoved
from healkit.parts.teach.gallery import LESSONS, SAMPLE_TABLES, SAMPLES, ColumnType, SampleTable

PERSONA = "default"
ADD_REASON = "seed: as shipped with healkit"
RESET_REASON = "seed --reset: back to the code as shipped"
UPDATE_REASON = "seed: the debug tool of this version of healkit"


@dataclasses.dataclass(frozen=True)
class SeedReport:
    """Result of a seeding, by name: tools added, kept, reset to their shipped code; tables created."""

    tools_added: tuple[str, ...] = ()
    tools_kept: tuple[str, ...] = ()
    tools_reset: tuple[str, ...] = ()
    tables_created: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line for a terminal: `41 tools added, 0 kept, 0 reset; 2 tables created`."""
        added, created = (
            plain.count(len(self.tools_added), "tool"),
            plain.count(len(self.tables_created), "table"),
        )
        return f"{added} added, {len(self.tools_kept)} kept, {len(self.tools_reset)} reset; {created} created"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Seed:
    """Tool that must exist, with the data to add it to the vault."""

    name: str
    code: str
    add: dict[str, Any]
    is_ours: bool = False


def seed(
    database: Database, vault: Vault, *, reset: bool = False, debug_tools_only: bool = False
) -> SeedReport:
    """Add the missing tools to the vault, and the missing sample data.

    reset: Restore the shipped code of every tool (a new revision for each that differs) and create the sample tables
        again.
    debug_tools_only: Only `get_last_error` and the other debug tools, for a database in use.

    Raises the errors of the vault and the database.
    """
    done: dict[str, list[str]] = {"added": [], "kept": [], "reset": []}
    tables = () if debug_tools_only else _create_tables(database, reset)
    if reset:
        for entry in vault.list(PERSONA, removed=True):
            if entry.tool_name in {wanted.name for wanted in _wanted(debug_tools_only)}:
                vault.restore(entry.tool_name, PERSONA, reason=RESET_REASON)
    there = {entry.tool_name: entry for entry in (*vault.list(PERSONA), *vault.list(PERSONA, removed=True))}
    former = vault.former_names(PERSONA)
    for wanted in _wanted(debug_tools_only):
        if wanted.name in former:  # the user has given it a name of his own
            done["kept"].append(wanted.name)
            continue
        done[_seed_tool(vault, wanted, there.get(wanted.name), reset)].append(wanted.name)
    return SeedReport(tuple(done["added"]), tuple(done["kept"]), tuple(done["reset"]), tables)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line of `seed_db.py`; return the exit code, 2 if the database or the call was wrong."""
    parser = argparse.ArgumentParser(prog="seed_db.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--db", metavar="URL_OR_PATH", help="the database (default: HEALKIT_DB, or the nearest healkit.db)"
    )
    parser.add_argument(
        "--reset", action="store_true", help="restore the shipped code of samples and gallery"
    )
    parser.add_argument(
        "--debug-tools-only", action="store_true", help="only get_last_error and the other debug tools"
    )
    options = parser.parse_args(argv)
    try:
        database = Database(resolve_url(options.db))
        try:
            report = seed(
                database, Vault(database), reset=options.reset, debug_tools_only=options.debug_tools_only
            )
        finally:
            database.close()
    except HealkitError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{database.where}: {report}\n")
    return 0


def _wanted(debug_tools_only: bool) -> Iterator[_Seed]:
    for tool in BUILTIN_TOOLS:
        add = {"description": tool.description, "grants": tool.grants, "group": tool.group}
        yield _Seed(name=tool.name, code=tool.code, add=add, is_ours=True)
    if debug_tools_only:
        return
    for group, samples in (("samples", SAMPLES), ("gallery", LESSONS)):
        for sample in samples:
            add = {
                "type": sample.type,
                "description": sample.description,
                "input_schema": sample.input_schema,
                "examples": sample.examples,
                "group": group,
            }
            yield _Seed(name=sample.name, code=sample.code, add=add)


def _seed_tool(vault: Vault, wanted: _Seed, there: VaultEntry | None, reset: bool) -> str:
    """Add the tool, or keep or reset the existing one; returns which of the three happened."""
    if there is None:
        try:
            vault.add(
                wanted.name, wanted.code, persona=PERSONA, author="seed", reason=ADD_REASON, **wanted.add
            )
        # Another process seeds the same database, and it has been patched already; or it was renamed and removed.
        except (ToolExists, ToolRemoved):
            return "kept"
        return "added"
    if there.removed_at is not None:  # a person removed it on purpose
        return "kept"
    digest = code_hash(wanted.code)
    if there.code_hash == digest:
        if code_hash(there.code) == digest or not reset:
            return "kept"
        # Tampered with: saving the true text under its hash again repairs the row, and adds no revision.
        vault.patch(wanted.name, wanted.code, persona=PERSONA, author="seed")
        return "reset"
    if not reset:
        past_hashes = {revision.code_hash for revision in vault.history(wanted.name, PERSONA)}
        if not wanted.is_ours or digest in past_hashes:
            return "kept"
    reason = RESET_REASON if reset else UPDATE_REASON
    vault.patch(wanted.name, wanted.code, persona=PERSONA, reason=reason, author="seed")
    return "reset"


_SQL_TYPES: dict[ColumnType, type[Integer | Float[Any] | Text | Date]] = {
    "integer": Integer,
    "float": Float,
    "text": Text,
    "date": Date,
}
_FROM_TEXT: dict[ColumnType, Callable[[str], Any]] = {
    "integer": int,
    "float": float,
    "text": str,
    "date": dt.date.fromisoformat,
}


def _create_tables(database: Database, reset: bool) -> tuple[str, ...]:
    """Create the missing sample tables, or with `reset` all; returns the names of those created."""
    if not reset and not _missing(SAMPLE_TABLES, database):
        return ()  # nothing to do, so no write lock to wait for
    with database.write() as session:
        connection = session.connection()
        created_tables = [table for table in SAMPLE_TABLES if _make_table(connection, table, reset)]
    return tuple(table.name for table in created_tables)


def _missing(tables: Iterable[SampleTable], database: Database) -> list[str]:
    with database.read() as session:
        inspector = inspect(session.connection())
        return [table.name for table in tables if not inspector.has_table(table.name)]


def _make_table(connection: Connection, sample: SampleTable, reset: bool) -> bool:
    exists = inspect(connection).has_table(sample.name)
    if exists and not reset:
        return False
    columns = [
        Column(name, _SQL_TYPES[kind], primary_key=name == sample.key, autoincrement=False)
        for name, kind in sample.columns.items()
    ]
    table = Table(sample.name, MetaData(), *columns)
    if exists:
        table.drop(connection)
    table.create(connection)
    connection.execute(table.insert(), [_typed(row, sample.columns) for row in sample.rows()])
    return True


def _typed(row: dict[str, str | None], columns: dict[str, ColumnType]) -> dict[str, Any]:
    """Return a row of text cells in the columns' Python types."""
    return {name: None if cell is None else _FROM_TEXT[columns[name]](cell) for name, cell in row.items()}
