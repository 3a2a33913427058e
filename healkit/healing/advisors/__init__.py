"""Advisors: healkit's own, and those of other packages."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points

from healkit.config import Config
from healkit.errors import ConfigError, HealkitError, did_you_mean
from healkit.healing.advisor import Advisor

#: Group under which a package names its advisors: callables that take the `Config` and return an `Advisor`.
ENTRY_POINTS = "healkit.advisors"
#: healkit's own advisors, cheapest first; loaded when they are asked.
_OWN = {
    "peers": "healkit.healing.advisors.peers:PeersAdvisor",
    "rules": "healkit.healing.advisors.rules:RulesAdvisor",
    "search": "healkit.healing.advisors.search:SearchAdvisor",
    "model": "healkit.healing.advisors.model:ModelAdvisor",
}


def advisor_names() -> list[str]:
    """Return the names that can be asked for, cheapest first."""
    return [*_OWN, *sorted(point.name for point in _plugins())]


def advisors_for(names: Sequence[str | Advisor], config: Config) -> tuple[list[Advisor], list[str]]:
    """Return the advisors of those names, and a note for each that cannot be asked.

    A name may also be an advisor itself, such as one that needs a person's editor. Raises `ConfigError` for an unknown
    name.
    """
    found: list[Advisor] = []
    notes: list[str] = []
    for name in dict.fromkeys(names):
        try:
            advisor = _named(name, config) if isinstance(name, str) else name
        except HealkitError:
            raise
        except Exception as error:  # noqa: BLE001 - another package's code; the other advisors are asked as usual
            notes.append(f"{name}: this advisor cannot be loaded: {type(error).__name__}: {error}")
            continue
        missing = getattr(advisor, "unavailable", "")
        if missing:
            notes.append(f"{advisor.name}: {missing}")
        else:
            found.append(advisor)
    return found, notes


def _named(name: str, config: Config) -> Advisor:
    return _own(name, config) if name in _OWN else _plugin(name, config)


def _own(name: str, config: Config) -> Advisor:
    module, _, kind = _OWN[name].partition(":")
    made = getattr(importlib.import_module(module), kind)
    advisor: Advisor = made(config) if name == "model" else made()
    return advisor


def _plugin(name: str, config: Config) -> Advisor:
    """Make another package's advisor; reading what is installed is slow, so it is done only here."""
    for point in _plugins():
        if point.name == name:
            make: Callable[[Config], Advisor] = point.load()
            return make(config)
    known = advisor_names()
    raise ConfigError(
        f"There is no advisor {name!r}.{did_you_mean(name, known)}", hint=f"There are {', '.join(known)}."
    )


def _plugins() -> list[EntryPoint]:
    return list(entry_points(group=ENTRY_POINTS))
