"""Python interpreter of a worker, and the files that it needs.

It is the interpreter of healkit itself. A tool's grants can name the installed packages that it can import
(`packages=`). A `View` turns both into mounts for the outside and rules for the inside.
"""

from __future__ import annotations

import dataclasses
import functools
import glob
import os
import site
import sys
import sysconfig
from pathlib import Path

from healkit.package import FOLDER

#: Distributions that a worker imports before any tool.
WORKER_NEEDS = ("ipykernel", "msgspec", "landlockpy")

_SYSTEM_READ = (
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/usr/share/fonts", "/usr/share/zoneinfo",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """Python installation: `folders` contain its standard library and libpython, `sites` its installed packages."""

    folders: tuple[str, ...]
    sites: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class View:
    """The files of its interpreter that a worker can see.

    Mounts are made first, masks empty a folder in them, packages are mounted last. Inside, `read` is readable and
    `listed` can be listed, each with everything below.
    """

    mounts: tuple[str, ...]
    masks: tuple[str, ...]
    packages: tuple[str, ...]
    read: tuple[str, ...]
    listed: tuple[str, ...]


@functools.cache
def interpreter() -> Interpreter:
    """Describe this process's interpreter."""
    paths = sysconfig.get_paths()
    installed = [*site.getsitepackages(), paths["purelib"], paths["platlib"]]
    library = sysconfig.get_config_var("LIBDIR") or paths["stdlib"]
    folders = dict.fromkeys([paths["stdlib"], paths["platstdlib"], library, *_loaded_from()])
    return Interpreter(tuple(folders), tuple(filter(os.path.isdir, dict.fromkeys(installed))))


def _loaded_from() -> list[str]:
    """Return the folders from which libpython was really loaded: Python may have been moved since it was built."""
    try:
        with open("/proc/self/maps") as maps:
            loaded = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps if "/libpython3" in line}
    except OSError:
        return []
    return [os.path.dirname(path) for path in sorted(loaded)]


def package_paths(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of those distributions and of all their dependencies; raise `ConfigError` for a missing one."""
    from healkit.core.workers import packages  # late, because a worker with all packages does not need it

    return packages.paths_of(names, interpreter().sites)


def package_names(names: tuple[str, ...]) -> frozenset[str]:
    """Return the names of those distributions and of all their dependencies, without those that are not installed."""
    from healkit.core.workers import packages

    return packages.names_of(names, interpreter().sites)


@functools.cache
def whole_view() -> View:
    """Return the view with all packages: interpreter, standard library, packages, this package, system libraries.

    It lists both the paths in `sys` and the targets of their links, because a mount needs the real path.
    """
    paths = _existing(with_packages=True)
    return View(paths, (), (), paths, ())


def narrow_view(granted: tuple[str, ...]) -> View:
    """Return the view with those packages, and their and the worker's dependencies; raise `ConfigError`."""
    return _narrow_view(package_paths((*WORKER_NEEDS, *granted)))


@functools.lru_cache(maxsize=32)
def _narrow_view(chosen: tuple[str, ...]) -> View:
    """Return the view of everything except installed packages, plus the chosen paths of those."""
    sites = interpreter().sites
    paths = _existing(with_packages=False)
    hidden = {os.path.realpath(path) for path in [*sites, *_package_folders(paths)]}
    # This package itself may be among the hidden ones, below a folder that is listed whole.
    candidates = dict.fromkeys([*paths, str(FOLDER)])
    apart = tuple(
        path for path in candidates if any(os.path.realpath(path).startswith(f"{h}/") for h in hidden)
    )
    mounts = tuple(path for path in paths if path not in apart)
    read, listed = _expanded(mounts, hidden)
    visible_paths = (*apart, *chosen)
    return View(
        mounts, tuple(_masks(mounts, hidden)), visible_paths, (*read, *visible_paths), (*listed, *sites)
    )


def _existing(*, with_packages: bool) -> tuple[str, ...]:
    python = interpreter()
    named: list[str | Path] = [
        sys.executable,
        Path(sys.prefix) / "pyvenv.cfg",
        FOLDER,
    ]
    named += [*python.folders, *(python.sites if with_packages else ()), *_SYSTEM_READ]
    existing: list[str] = []
    # Python may have been moved since it was built; its old place may be unreadable.
    for path in map(Path, filter(os.path.exists, named)):
        existing += [str(p) for p in (*_link_chain(path), path.resolve()) if os.path.exists(p)]
    return tuple(_without_nested(dict.fromkeys(existing)))


def _package_folders(paths: tuple[str, ...]) -> list[str]:
    """Return package folders of other interpreters in these paths: a virtual environment's base, a system's Python."""
    patterns = ("site-packages", "dist-packages", "python3*/site-packages", "python3*/dist-packages")
    return [
        hit for path in paths for pattern in patterns for hit in glob.glob(f"{glob.escape(path)}/{pattern}")
    ]


def _masks(mounts: tuple[str, ...], hidden: set[str]) -> list[str]:
    """Return each hidden folder by every name under which a mount shows it (`/lib` is often a link to `/usr/lib`)."""
    masks = []
    for mount in mounts:
        real = os.path.realpath(mount)
        masks += [mount + folder[len(real) :] for folder in hidden if folder.startswith(f"{real}/")]
    return sorted(masks)


def _expanded(paths: tuple[str, ...], hidden: set[str]) -> tuple[list[str], list[str]]:
    """Replace each path that contains a hidden folder by its other entries; return the paths, and the opened folders.

    A Landlock rule applies to everything below it and cannot be withdrawn further down.
    """
    read: list[str] = []
    listed: list[str] = []
    visited: set[str] = set()
    # Paths without a link first, because those are the names that Python itself uses.
    waiting = sorted(paths, key=lambda path: os.path.realpath(path) != path)
    while waiting:
        path = waiting.pop(0)
        real = os.path.realpath(path)
        if real in visited or real in hidden:
            continue
        visited.add(real)
        if any(folder.startswith(f"{real}/") for folder in hidden):
            listed.append(path)
            waiting += sorted(entry.path for entry in os.scandir(path))
        else:
            read.append(path)
    return read, listed


def _link_chain(path: Path) -> list[Path]:
    """Return the path and, while it is a link, its targets: `python` → `python3` → `/usr/bin/python3.11`."""
    chain = [path]
    while chain[-1].is_symlink() and len(chain) < 10:
        chain.append(chain[-1].parent / chain[-1].readlink())
    return chain


def _without_nested(paths: dict[str, None]) -> list[str]:
    """Return the paths without those that are inside another one."""
    return [p for p in paths if not any(p != outer and p.startswith(f"{outer}/") for outer in paths)]
