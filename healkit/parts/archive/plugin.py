"""What files of executions and retention hook into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl
from healkit.parts.archive.auto_retention import AutoRetention

if TYPE_CHECKING:
    from healkit.core.store.database import Database
    from healkit.parts.archive.archive import Files
    from healkit.services import Services


@hookimpl
def log_files(database: Database) -> Files:
    """Return what exports, imports and archives executions."""
    from healkit.parts.archive.archive import Files

    return Files(database)


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`retention`, which deletes records beyond the configured limits."""
    return {"retention": lambda services: AutoRetention(services.database, services.config)}


@hookimpl
def opened(services: Services) -> None:
    """Start it, if there is a limit."""
    services.retention.start()


@hookimpl
def closing(services: Services) -> None:
    """End it after the batch in progress."""
    services.retention.close()


@hookimpl
def problem(services: Services) -> str:
    """Return the error of its last round."""
    problem: str = services.retention.problem
    return problem
