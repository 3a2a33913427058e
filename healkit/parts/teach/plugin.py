"""What the gallery adds to a `Healkit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl, rows_of

if TYPE_CHECKING:
    from healkit.parts.teach.seeding import SeedReport
    from healkit.services import Services


@hookimpl
def commands() -> Mapping[str, Callable[[], Any]]:
    """`healkit seed`."""
    return rows_of("healkit.parts.teach.commands", "seed")


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`seed(…)`."""
    return {"seed": _seed}


def _seed(services: Services) -> Callable[..., SeedReport]:
    def seed(*, reset: bool = False, debug_tools_only: bool = False) -> SeedReport:
        """Put the debug tools, the samples and the gallery into the vault; twice changes nothing.

        reset: Restore the shipped code of every tool, and create the sample tables again.
        debug_tools_only: Only `get_last_error` and the other debug tools, for a database in use.

        Example:
        >>> with Healkit("lessons.db") as lessons:
        ...     report = lessons.seed(debug_tools_only=True)
        >>> report.tools_added
        ('get_last_error', 'list_tools', 'inspect_tool', 'list_executions')
        """
        from healkit.parts.teach.seeding import seed

        return seed(services.database, services.vault, reset=reset, debug_tools_only=debug_tools_only)

    return seed
