"""The process's own Healkit for each database.

It is made when code needs a Healkit and was given none. The magics, `execute_tool` and `%unload_ext` use it; code that
makes a `Healkit` does not need it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from healkit.app import Healkit, open_healkits
from healkit.core.runtime import background
from healkit.core.runtime.execution import Execution
from healkit.core.store.database import resolve_url
from healkit.errors import ConfigError

#: The process's own Healkits, by the URL of the database.
_defaults: dict[str, Healkit] = {}
_lock = threading.Lock()


def default_healkit(db: str | Path | None = None) -> Healkit:
    """Return this process's Healkit for a database, opened once; by default for the default database."""
    url = resolve_url(db)
    with _lock:
        instance = _defaults.get(url)
        if instance is None or instance.closed:
            instance = _defaults[url] = Healkit(url)
        return instance


def execute_tool(
    tool_name: str, persona: str = "default", arguments: Mapping[str, Any] | None = None, session: Any = None
) -> Any:
    """Run a tool on the default database, or on the database of a SQLModel or SQLAlchemy session.

    Only the session's database is read: the session is not used, committed or rolled back, whatever its state. Raises
    the errors of `Healkit.execute_tool`.

    Example:
    >>> healkit.execute_tool("mean", arguments={"values": [1, 2, 6]})
    3.0
    """
    return default_healkit(None if session is None else _database_of(session)).execute_tool(
        tool_name, persona, arguments
    )


def _database_of(session: Any) -> str:
    url = session.get_bind().engine.url
    if url.get_backend_name() == "sqlite" and not url.database:
        raise ConfigError(
            "The session's database is in memory, where no second connection can write a log.",
            hint="Use a file: create_engine('sqlite:///healkit.db').",
        )
    return str(url.render_as_string(hide_password=False))


def find_execution(trace_id: str) -> tuple[Healkit, Execution] | None:
    """Find the open Healkit whose log has that execution, and the execution; None if there is none."""
    for healkit in list(open_healkits):
        row = None if healkit.closed else healkit.log.by_trace(trace_id)
        if row is not None:
            return healkit, healkit.history.complete(row)
    return None


def release() -> None:
    """End everything that this process keeps warm: the default Healkits, all workers and servers, the event loop.

    Called on `%unload_ext healkit`. A Healkit that you made remains open, and starts what it needs again.
    """
    with _lock:
        defaults = list(_defaults.values())
        _defaults.clear()
    for healkit in defaults:
        healkit.close()
    background.shutdown()
