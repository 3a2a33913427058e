"""Migrations: a database's tables brought up to this version.

The number of the last migration that ran is in a table of ours, `healkit_version`, not in `alembic_version`: the
database may be one that its owner migrates with Alembic too. Reading that number takes one query and no Alembic, which
costs a third of a second to import; it is imported only when there really is something to run.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from healkit.errors import DatabaseNewer

if TYPE_CHECKING:
    from sqlalchemy import Connection

VERSION_TABLE = "healkit_version"
FOLDER = Path(__file__).parent / "migrations"

READ_VERSION = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608 - a constant of ours


@cache
def versions() -> tuple[str, ...]:
    """Return the numbers of all migrations that this version ships, in order: `("0001", …)`."""
    found = (re.match(r"(\d{4})_\w+\.py$", file.name) for file in (FOLDER / "versions").iterdir())
    return tuple(sorted(match[1] for match in found if match))


def head() -> str:
    """Return the number of the newest migration."""
    return versions()[-1]


def refuse_newer(version: str | None, where: str) -> None:
    """Raise `DatabaseNewer` for a version that this healkit does not know."""
    if version is not None and version not in versions():
        raise DatabaseNewer(
            f"The database {where} was written by a newer healkit (its tables are at {version!r}, "
            f"this version knows up to {head()!r}). It was left untouched.",
            hint="Upgrade healkit (pip install -U healkit), or name another database with HEALKIT_DB.",
        )


def current_version(connection: Connection) -> str | None:
    """Return the number of the last migration that ran there, or None before the first."""
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError

    try:
        with connection.begin_nested():
            return connection.execute(text(READ_VERSION)).scalar_one_or_none()
    except DBAPIError as error:
        if "no such table" in str(error.orig) or getattr(error.orig, "sqlstate", "") == "42P01":
            return None
        raise


def upgrade(connection: Connection, where: str, to: str = "head") -> bool:
    """Run the missing migrations in the connection's open write transaction; return False when there were none.

    The version is read again here, under the lock: of two processes that open a new database at once, the
    second finds the work done. Raises `DatabaseNewer`.
    """
    version = current_version(connection)
    refuse_newer(version, where)
    if version == (head() if to == "head" else to):
        return False
    from alembic import command
    from alembic.config import Config

    from healkit.store import adopt

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    adopting = version is None and adopt.set_aside(connection, where)
    command.upgrade(config, to)
    if adopting:
        adopt.bring_back(connection, where)
    return True
