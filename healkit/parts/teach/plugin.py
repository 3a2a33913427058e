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
        """Put the debug tools, the samples and the gallery into the vault; twice changes nothing."""
        from healkit.parts.teach.seeding import seed

        return seed(services.database, services.vault, reset=reset, debug_tools_only=debug_tools_only)

    return seed
