"""What trials and replays add to a `Healkit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl

if TYPE_CHECKING:
    from healkit.parts.trials.replays import Replays
    from healkit.services import Services


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`trials(…)`, `replay(…)` and `export_cassette(…)`."""
    return {
        "trials": _trials,
        "replays": _replays,
        "replay": lambda services: services.replays.replay,
        "export_cassette": lambda services: services.replays.export_cassette,
    }


def _trials(services: Services) -> Callable[..., Any]:
    from healkit.parts.trials.trials import Trials

    return Trials(services.recorder, services.config).run_all


def _replays(services: Services) -> Replays:
    from healkit.parts.trials.replays import Replays

    return Replays(services)
