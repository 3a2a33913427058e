"""Installed packages by name: dependencies and paths.

They are read from the metadata that pip leaves (`RECORD`, `Requires-Dist`); no package is imported.
"""

from __future__ import annotations

import csv
import functools
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from healkit.errors import ConfigError, did_you_mean

#: The sites with the time of their last change, as cache key of what is installed there.
_Key = tuple[tuple[str, int], ...]


class _Installed:
    """Distributions of some sites; of two with the same name, the first site's counts, as in an import."""

    def __init__(self, sites: Iterable[str]) -> None:
        self.by_name: dict[str, Distribution] = {}
        #: Site → distribution → the files that it has there, relative to the site.
        self.files: dict[str, dict[str, list[str]]] = {}
        for site in sites:
            here = self.files[site] = {}
            for dist in distributions(path=[site]):
                name = canonicalize_name(dist.name)
                here[name] = _files(dist)
                self.by_name.setdefault(name, dist)

    @functools.cached_property
    def modules(self) -> dict[str, str]:
        """Top-level module → its distribution: `yaml` → `pyyaml`."""
        return {
            file.partition("/")[0].partition(".")[0]: name
            for here in self.files.values()
            for name, files in here.items()
            for file in files
        }


def paths_of(names: tuple[str, ...], sites: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files and folders of these distributions and of their dependencies.

    A name may have extras (`pandas[excel]`). Raises `ConfigError` for one that is not installed.
    """
    return _paths_of(names, _key(sites))


def names_of(names: tuple[str, ...], sites: tuple[str, ...]) -> frozenset[str]:
    """Return the names of these distributions and of their dependencies, as far as they are installed."""
    installed = _installed(_key(sites))
    requirements = [need for name in names if (need := _parsed(name)) is not None]
    return frozenset(_closure(requirements, installed))


@functools.lru_cache(maxsize=64)
def _paths_of(names: tuple[str, ...], key: _Key) -> tuple[str, ...]:
    installed = _installed(key)
    wanted = _closure([_asked(name, installed) for name in names], installed)
    paths = []
    for site, files in installed.files.items():
        # If two sites have a distribution, only the one that an import finds.
        mine = {n for n in wanted & files.keys() if _site_of(installed.by_name[n]) == os.path.realpath(site)}
        paths += [os.path.join(site, path) for path in _own(files, mine)]
    return tuple(sorted(path for path in paths if os.path.exists(path)))


@functools.lru_cache(maxsize=4)
def _installed(key: _Key) -> _Installed:
    return _Installed(site for site, _ in key)


def _key(sites: Iterable[str]) -> _Key:
    return tuple((site, os.stat(site).st_mtime_ns) for site in sites if os.path.isdir(site))


def _site_of(dist: Distribution) -> str:
    return os.path.realpath(str(dist.locate_file("")))


def _asked(text: str, installed: _Installed) -> Requirement:
    """Return one name as a requirement that is installed; raise `ConfigError`."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise ConfigError(
            f"The grant packages={text!r} is not a package's name.",
            hint="Write it as pip does: scikit-learn.",
        ) from None
    if canonicalize_name(requirement.name) in installed.by_name:
        return requirement
    if (owner := installed.modules.get(requirement.name)) is not None:
        raise ConfigError(
            f"The grant packages={text!r} names a module, not a package.", hint=f"It comes with {owner!r}."
        )
    raise ConfigError(
        f"The grant packages={text!r} names a package that is not installed."
        + did_you_mean(requirement.name, installed.by_name),
        hint=f"Those that are: {sys.executable} -m pip list.",
    )


def _closure(asked: list[Requirement], installed: _Installed) -> set[str]:
    """Return the names of these and all their dependencies, without optional ones that are not installed."""
    wanted: set[tuple[str, str]] = set()
    waiting = [(canonicalize_name(need.name), extra) for need in asked for extra in ("", *need.extras)]
    while waiting:
        name, extra = waiting.pop()
        dist = installed.by_name.get(name)
        if dist is None or (name, extra) in wanted:
            continue
        wanted.add((name, extra))
        for text in dist.requires or ():
            need = _parsed(text)
            if need is not None and _applies(need, extra):
                waiting += [(canonicalize_name(need.name), e) for e in ("", *need.extras)]
    return {name for name, _ in wanted}


def _parsed(text: str) -> Requirement | None:
    """Parse one line of a distribution's metadata; None for old forms that no standard allows any more."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _applies(need: Requirement, extra: str) -> bool:
    try:
        return need.marker is None or need.marker.evaluate({"extra": extra})
    except UndefinedEnvironmentName:
        return True  # a marker of a later standard: include the package


def _files(dist: Distribution) -> list[str]:
    """Return its files, relative to its site, without those outside of it (scripts, Jupyter's data)."""
    record = dist.read_text("RECORD")
    if record is not None:
        names = [row[0] for row in csv.reader(record.splitlines()) if row]
    else:  # installed by a tool older than wheels, or by a distributor
        modules = (dist.read_text("top_level.txt") or dist.name.replace("-", "_")).split()
        suffixes = ("", ".py", ".so")
        names = [module + suffix for module in modules for suffix in suffixes]
        metadata = getattr(dist, "_path", None)
        names += [metadata.name] if metadata is not None else []
    return [name for name in names if not name.startswith(("..", "/"))]


def _own(files: Mapping[str, list[str]], wanted: set[str], prefix: str = "") -> list[str]:
    """Return the shortest paths that contain files of the wanted distributions and of no others.

    Usually that is a package's folder. If several distributions share it (a namespace package), it is a path further
    down.
    """
    children: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, paths in files.items():
        for path in paths:
            head, _, rest = path.partition("/")
            children[head][name].append(rest)
    shortest = []
    for head, owners in children.items():
        if not wanted & owners.keys():
            continue
        if wanted >= owners.keys() or any("" in paths for paths in owners.values()):
            shortest.append(prefix + head)
        else:
            shortest += _own(owners, wanted, f"{prefix}{head}/")
    return shortest
