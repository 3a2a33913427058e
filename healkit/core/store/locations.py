"""Location of the database, and SQLite's URI of a file.

An in-memory SQLite database belongs to one connection, but healkit's log needs its own connection beside the caller's.
A shared-cache memory database allows two connections. But they lock each other's tables, so a caller's open transaction
would block the log. So `sqlite://` means a private temporary FILE here, which is removed when its process ends.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from healkit.core.plain_files import new_temporary_folder
from healkit.errors import ConfigError, DatabaseMissing
from healkit.plain_text import shown_url

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine, Pool

#: Time that a server has to answer, in seconds, unless the URL has a `connect_timeout`.
CONNECT_TIMEOUT_S = 10

#: Name of the file that is searched for in the working directory and above it.
FILE_NAME = "healkit.db"

#: A question mark in a URL's path.
_ENCODED_MARK = re.compile("%3F", re.IGNORECASE)
_IN_MEMORY = {":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite+pysqlite://"}
_IN_MEMORY |= {"sqlite+pysqlite:///", "sqlite+pysqlite:///:memory:"}


def resolve_url(
    given: str | Path | None = None, environ: Mapping[str, str] | None = None, cwd: str | Path | None = None
) -> str:
    """Return the URL of the database in use, like `choice`, without the reason."""
    return choice(given, environ, cwd)[0]


def choice(
    given: str | Path | None = None, environ: Mapping[str, str] | None = None, cwd: str | Path | None = None
) -> tuple[str, str]:
    """Return the URL of the database in use, and the reason for this choice.

    `given` and `HEALKIT_DB` are a URL or a plain path. The nearest file is searched for in `cwd` and upward, up to the
    home folder, but not in a parent folder that another user owns. The user's default database is in the platform's
    folder for user data. Raises `DatabaseMissing` if that folder cannot be made.
    """
    environ = os.environ if environ is None else environ
    folder = Path(cwd) if cwd is not None else Path.cwd()
    if given is not None and str(given):
        return _as_url(str(given), folder), "named"
    if wanted := environ.get("HEALKIT_DB"):
        # Every reader of the variable in this process gets the same database, even one in memory.
        return _process_url() if _is_in_memory(wanted) else _as_url(wanted, folder), "named by HEALKIT_DB"
    for place in _upward(folder.absolute()):
        if (place / FILE_NAME).is_file():
            why = "in this folder" if place == folder.absolute() else "the nearest one in the folders above"
            return file_url(place / FILE_NAME), why
    return file_url(_user_data_folder() / FILE_NAME), "yours, for folders without one"


def _upward(folder: Path) -> Iterator[Path]:
    """Yield the folder and its parents up to the home folder, as long as this user owns them."""
    home = os.path.expanduser("~")
    for place in (folder, *folder.parents):
        try:
            if place != folder and place.stat().st_uid != os.geteuid():
                return
        except OSError:
            return
        yield place
        if str(place) == home:
            return


def file_url(path: Path) -> str:
    """Return the URL of a SQLite file; a `?` in its name, which would begin a query, becomes `%3F`."""
    text = _ENCODED_MARK.sub("%253F", str(path.absolute())).replace("?", "%3F")
    return f"sqlite:///{text}"


def _file_of(url: str) -> str:
    """Return the path in a SQLite URL, decoded as `file_url` encodes it, without the query."""
    text = url.partition(":///")[2].partition("?")[0]
    return _ENCODED_MARK.sub("?", text).replace("%253F", "%3F")


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite URL, or None for another database; raise `ConfigError` for a `file:` URI."""
    if not url.startswith(("sqlite:", "sqlite+")):
        return None
    path = _file_of(url)
    if path.startswith("file:") or not path:
        raise ConfigError(
            f"{shown_url(url)!r} does not name a file.",
            hint="Write sqlite:///folder/name.db, or the plain path.",
        )
    return Path(path).absolute()


def server_url(url: str) -> URL:
    """Parse the URL of a server; raise `ConfigError` without any part of the password."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or "@" in (parsed.host or ""):
        raise ConfigError(
            f"{shown_url(url)!r} is not a database's URL.",
            hint="Write postgresql+psycopg://user:password@host/name. In the password, write %40 for @, %3A "
            "for a colon and %2F for a slash.",
        )
    return parsed


def server_engine(
    url: str,
    within_s: float = CONNECT_TIMEOUT_S,
    *,
    pool_pre_ping: bool = False,
    poolclass: type[Pool] | None = None,
) -> Engine:
    """Make SQLAlchemy's engine for a server; connecting fails after `within_s` seconds without an answer.

    A `connect_timeout` in the URL has priority. The driver only accepts whole seconds, at least two. Raises
    `ConfigError` like `server_url`.
    """
    from sqlalchemy import create_engine

    parsed = server_url(url)
    own_wait = "connect_timeout" in parsed.query
    connect_args = {} if own_wait else {"connect_timeout": max(2, math.ceil(within_s))}
    return create_engine(parsed, connect_args=connect_args, pool_pre_ping=pool_pre_ping, poolclass=poolclass)


def views_folder(path: Path | None, url: str) -> Path:
    """Return the folder of a database's data views: beside its file; for a server, in the user's data folder."""
    if path is not None:
        return path.with_name(f"{path.stem}.views")
    import platformdirs

    name = hashlib.sha256(url.encode()).hexdigest()[:16]
    return Path(platformdirs.user_data_dir("healkit", appauthor=False)) / "views" / name


def sqlite_uri(path: Path, mode: str) -> str:
    """Return SQLite's own URI of the file; `mode` is `ro`, `rw` or `rwc`.

    In a read-only folder or on a full disk, a WAL database has no place for its shared memory. `immutable` can still
    read it, but is only correct if there is no WAL file with recent changes beside it.
    """
    uri = f"file:{quote(str(path))}?mode={mode}"
    beside = Path(f"{path}-wal")
    nowhere = mode == "ro" and (not is_writable(path.parent) or is_full(path))
    if nowhere and not (beside.exists() and beside.stat().st_size):
        uri += "&immutable=1"
    return uri


def is_writable(path: Path) -> bool:
    """Return True if the effective user may write there."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def is_full(path: Path) -> bool:
    """Return True if the disk has no room for another shared-memory block of SQLite's WAL."""
    try:
        return shutil.disk_usage(path.parent).free < 64 * 1024
    except OSError:
        return False


def _as_url(text: str, folder: Path) -> str:
    if _is_in_memory(text):
        return _temporary_url()
    if "://" in text:
        path = sqlite_path(text)
        if path is None:
            return text
        return file_url(folder / _file_of(text))
    try:
        return file_url(folder / Path(text).expanduser())
    except RuntimeError:  # a name that begins with ~ but is not a user's
        return file_url(folder / text)


def _is_in_memory(text: str) -> bool:
    return text in _IN_MEMORY or (
        text.startswith(("sqlite", "file:")) and "mode=memory" in text.partition("?")[2]
    )


@functools.cache
def _process_url() -> str:
    return _temporary_url()


#: Databases in memory, which are removed when this process ends.
_temporary: set[Path] = set()


def is_temporary(path: Path | None) -> bool:
    """Return True for the file of a database in memory."""
    return path in _temporary


def _temporary_url() -> str:
    folder, owner = new_temporary_folder("healkit-"), os.getpid()
    _temporary.add(folder / FILE_NAME)

    def remove() -> None:
        if os.getpid() == owner:  # a forked child must not remove its parent's database
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return file_url(folder / FILE_NAME)


def _user_data_folder() -> Path:
    import platformdirs

    folder = Path(platformdirs.user_data_dir("healkit", appauthor=False))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseMissing(
            f"There is no {FILE_NAME} here or above, and {str(folder)!r} cannot be made: {error.strerror}.",
            hint="Name a database: Healkit('path/to/healkit.db'), or set HEALKIT_DB.",
        ) from None
    return folder
