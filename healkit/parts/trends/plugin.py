"""What trends add to a `Healkit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl

if TYPE_CHECKING:
    from healkit.parts.trends.trends import Trends
    from healkit.services import Services


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`trends`, and two of its methods."""
    return {
        "trends": _trends,
        "replay_of": lambda services: services.trends.replay_of,
        "plot": lambda services: services.trends.plot,
    }


def _trends(services: Services) -> Trends:
    from healkit.parts.trends.trends import Trends

    return Trends(services.log, services.history.complete)
