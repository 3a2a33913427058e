"""Trust in databases: which ones may grant anything.

A database says what its tools may read, write, call and start. A database from elsewhere would do so with the authority
of the person who opens it. So a database grants nothing until its user trusts it, once. A database that healkit makes
is trusted by its maker.

Trust is stored in the user's data folder, never in the database. Each place has a file with the identity of the
database there. Another database at that place has another identity, and a copy has another place. A database on a
server is trusted by its URL.

The identity is the id of the audit's chain: random, made with the tables, never changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sqlite3
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from healkit.core.contracts.execution import utc_now
from healkit.core.store import migrate
from healkit.errors import DatabaseError

READ_IDENTITY = "SELECT chain FROM traceauditchain"
#: Query whether that is healkit's own table, not a view that never ends.
HAS_IDENTITY = """SELECT name FROM sqlite_master WHERE name = 'traceauditchain'
    AND sql = 'CREATE TABLE traceauditchain (chain VARCHAR(64) NOT NULL PRIMARY KEY)'"""

#: Query of what a database grants: its tools, and the patches that wait for approval.
TOOLS = """SELECT tool_name, target_persona, active_revision, grants, flags FROM toolregistry
    WHERE removed_at IS NULL ORDER BY tool_name, target_persona"""
WAITING = "SELECT tool_name, target_persona, parent FROM patchrequest WHERE state = 'pending' ORDER BY id"

#: Limits of an untrusted database; an execution's result uses it too, to say that its tool had no grants.
NO_AUTHORITY = "its tools run without grants and calls, and no request can be accepted"
WITHOUT_GRANTS = (
    "This database is not trusted, so the tool ran without grants and calls: healkit trust --show says more."
)
_SESSION = "made by you, in this process"


class _Record(msgspec.Struct, frozen=True):
    """Content of a file: the trusted database, whether its user made it, and since when."""

    database: str
    identity: str
    own: bool
    since: datetime


#: Databases that this process made in memory, or whose trust cannot be stored: trusted until the process
#: ends.
_unwritten: set[tuple[str, str]] = set()

#: Differences in a table's definition that have no effect.
_FILLING = re.compile(r"[\s\"`\[\]]+")


def hint(place: str) -> str:
    """Return the next step for a user who needs to trust the database at that place."""
    typed = shlex.quote(place)
    return (
        f"healkit trust --show {typed} says what it would grant. If it is yours, or from someone you trust, write "
        f"healkit trust {typed} once. (A database from before healkit asked this has to be trusted once too.)"
    )


def why_trusted(place: str, identity: str) -> str:
    """Return since when and why this user trusts the database of that identity at that place; "" if they do not."""
    try:
        record = msgspec.json.decode(_file(place).read_bytes(), type=_Record)
    except (OSError, msgspec.DecodeError):
        return _SESSION if (place, identity) in _unwritten else ""
    if (record.database, record.identity) != (place, identity):
        return ""
    return f"{'made by you' if record.own else 'trusted by you'}, {record.since:%Y-%m-%d}"


def trust(place: str, identity: str, *, own: bool = False) -> None:
    """Trust the database, in every process of this user; raise `DatabaseError` if that cannot be stored.

    own: This process has made it.
    """
    record, file = _Record(place, identity, own, utc_now()), _file(place)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = file.with_name(f"{file.name}.{os.getpid()}")
        written.write_bytes(msgspec.json.encode(record))
        written.replace(file)
    except OSError as error:
        raise DatabaseError(
            f"Trust in {place!r} cannot be kept in {str(file.parent)!r}: {error.strerror}.",
            hint="Make that folder writable; XDG_DATA_HOME can name another place for your data.",
        ) from None


def trust_own(place: str, identity: str, *, lasting: bool) -> None:
    """Trust a database that this process has made; only in this process, unless it lasts and trust can be stored."""
    if lasting:
        with suppress(DatabaseError):
            return trust(place, identity, own=True)
    _unwritten.add((place, identity))
    return None


def distrust(place: str) -> bool:
    """Stop trusting the database at that place; return whether it was trusted."""
    _unwritten.difference_update({entry for entry in _unwritten if entry[0] == place})
    with suppress(FileNotFoundError):
        _file(place).unlink()
        return True
    return False


def strange_parts(connection: sqlite3.Connection, version: str) -> list[str]:
    """Name foreign parts that SQLite would run, or would read in place of healkit's own.

    These are all foreign triggers, and tables and indexes that differ from healkit's. Examples are a view of such a
    name, and a foreign default or check. Other tables and views are never used. version: Version of the tables.
    """
    expected = migrate.schema_of(version)
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    there = {name: (kind, _plain(sql)) for kind, name, _, sql in rows}
    tables = {name for name, (kind, _) in expected.items() if kind == "table"}
    strange = [
        f"the {kind} {name!r}"
        for kind, name, table, sql in rows
        if name not in expected
        and sql is not None
        and (kind == "trigger" or (kind == "index" and table in tables))
    ]
    differing = [
        name for name, (kind, sql) in expected.items() if there.get(name, ("", "")) != (kind, _plain(sql))
    ]
    return strange + [f"the {expected[name][0]} {name!r}, changed" for name in differing]


def _plain(sql: str | None) -> str:
    return _FILLING.sub("", sql or "").lower()


def trusted_folder() -> Path:
    """Return the folder with the record of this user's trust; no tool may write there."""
    import platformdirs

    return Path(platformdirs.user_data_dir("healkit", appauthor=False)) / "trusted"


def _file(place: str) -> Path:
    name = hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:32]
    return trusted_folder() / f"{name}.json"
