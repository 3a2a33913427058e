"""Hooks of maps: many inputs for one tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl, rows_of

if TYPE_CHECKING:
    from healkit.core.store.database import Database
    from healkit.parts.maps.maps import Maps
    from healkit.services import Services


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`map(…)` and `amap(…)`."""
    return {
        "maps": _maps,
        "map": lambda services: services.maps.map,
        "amap": lambda services: services.maps.amap,
    }


@hookimpl
def commands() -> Mapping[str, Callable[[], Any]]:
    """`healkit map`."""
    return rows_of("healkit.parts.maps.commands", "map")


@hookimpl
def mcp_tools() -> Mapping[str, Callable[[], Any]]:
    """`map_tool`."""
    return rows_of("healkit.parts.maps.commands", "map_tool", table="TOOLS")


@hookimpl
def record_folders(services: Services) -> Sequence[Path]:
    """Return the folder of the values."""
    from healkit.parts.maps.record import folder_of

    return (folder_of(services.database),)


@hookimpl
def pruned(database: Database) -> None:
    """Remove the values of maps that have no rows left."""
    from healkit.parts.maps.record import remove_unused

    remove_unused(database)


def _maps(services: Services) -> Maps:
    from healkit.parts.maps.maps import Maps

    return Maps(services)
