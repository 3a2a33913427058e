"""Python of a worker, and the files that it needs.

By default it is the one that healkit itself runs in; a tool's grants can name another (`python=`), and which of the
installed packages it sees (`packages=`). A `View` turns both into mounts for the outside and rules for the inside.
"""

from __future__ import annotations

import dataclasses
import functools
import glob
import os
import shlex
import subprocess
from pathlib import Path

import msgspec

import healkit
from healkit.core.workers.inside import interpreter as inside
from healkit.errors import ConfigError

#: Imports of a worker before any tool; the bounds are those of pyproject.toml.
WORKER_NEEDS = ("ipykernel>=7.1", "msgspec>=0.19", "landlockpy>=0.2")
#: The oldest Python that the worker's side of this package can be imported in.
OLDEST = (3, 11)

_SYSTEM_READ = (
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/usr/share/fonts", "/usr/share/zoneinfo",
)  # fmt: skip
_ASK_TIMEOUT_S = 20.0


class Interpreter(msgspec.Struct, frozen=True):
    """Python installation: `folders` hold its standard library and libpython, `sites` its installed packages."""

    executable: str
    prefix: str
    version: str
    folders: list[str]
    sites: list[str]
    markers: dict[str, str]


@dataclasses.dataclass(frozen=True)
class View:
    """View that a worker has of its interpreter.

    Mounts are made first, masks empty a folder within them, packages are mounted last. Inside, `read` may be read and
    `listed` may be listed, with what is beneath them.
    """

    mounts: tuple[str, ...]
    masks: tuple[str, ...]
    packages: tuple[str, ...]
    read: tuple[str, ...]
    listed: tuple[str, ...]


@functools.cache
def interpreter_of(python: str | None = None) -> Interpreter:
    """Describe this process's own interpreter, or the one at that path; raises `ConfigError` where it is not usable."""
    if python is None:
        return msgspec.convert(inside.describe(), Interpreter)
    try:
        done = subprocess.run(
            [python, "-I", str(Path(inside.__file__))],
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASK_TIMEOUT_S,
            check=True,
        )
        found = msgspec.json.decode(done.stdout, type=Interpreter)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"The grant python={python!r} does not answer as a Python interpreter does: {_last_line(error)}.",
            hint="Name its executable, such as /path/to/venv/bin/python.",
        ) from None
    if tuple(map(int, found.version.split(".")[:2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ConfigError(
            f"The grant python={python!r} is Python {found.version}; a worker needs {oldest} or later.",
            hint=f"Make it an environment with a newer one: python{oldest} -m venv FOLDER.",
        )
    return found


def what_is_missing(python: str) -> list[str]:
    """Return a worker's requirements that are not installed for that interpreter; looked up anew each time."""
    from healkit.core.workers import packages  # late: a worker with all packages does not need it

    return packages.unmet(WORKER_NEEDS, interpreter_of(python).sites)


def install_command(python: str, missing: list[str]) -> str:
    """Return the command that installs them."""
    return shlex.join([python, "-m", "pip", "install", *missing])


def package_paths(names: tuple[str, ...], python: str | None = None) -> tuple[str, ...]:
    """Return the paths of those distributions and all they depend on; raises `ConfigError` for one not installed."""
    from healkit.core.workers import packages

    found = interpreter_of(python)
    return packages.paths_of(names, tuple(found.sites), found.markers, found.executable)


def package_names(names: tuple[str, ...], python: str | None = None) -> frozenset[str]:
    """Return the names of those distributions and all they depend on, without those that are not installed."""
    from healkit.core.workers import packages

    found = interpreter_of(python)
    return packages.names_of(names, tuple(found.sites), found.markers)


@functools.cache
def whole_view(python: str | None = None) -> View:
    """Return the view with all packages: interpreter, standard library, packages, this package, system libraries.

    Both the paths that `sys` names and where their links lead are listed, because a mount holds what it is given.
    Raises `ConfigError`, as `interpreter_of` does.
    """
    paths = _existing(interpreter_of(python), with_packages=True)
    return View(paths, (), (), paths, ())


def narrow_view(python: str | None, granted: tuple[str, ...]) -> View:
    """Return the view with those packages, and what they and a worker depend on; raises `ConfigError`."""
    from packaging.requirements import Requirement

    needed = tuple(Requirement(text).name for text in WORKER_NEEDS)
    return _narrow_view(python, package_paths((*needed, *granted), python))


@functools.lru_cache(maxsize=32)
def _narrow_view(python: str | None, chosen: tuple[str, ...]) -> View:
    """Return the view of all but the installed packages, and of those the chosen paths."""
    found = interpreter_of(python)
    paths = _existing(found, with_packages=False)
    hidden = {os.path.realpath(path) for path in [*found.sites, *_package_folders(paths)]}
    # This package itself may be installed among those that are hidden, and then below a folder that is listed whole.
    candidates = dict.fromkeys([*paths, str(Path(healkit.__file__).parent)])
    apart = tuple(
        path for path in candidates if any(os.path.realpath(path).startswith(f"{h}/") for h in hidden)
    )
    mounts = tuple(path for path in paths if path not in apart)
    read, listed = _expanded(mounts, hidden)
    shown = (*apart, *chosen)
    return View(mounts, tuple(_masks(mounts, hidden)), shown, (*read, *shown), (*listed, *found.sites))


def _existing(found: Interpreter, *, with_packages: bool) -> tuple[str, ...]:
    named: list[str | Path] = [
        found.executable,
        Path(found.prefix) / "pyvenv.cfg",
        Path(healkit.__file__).parent,
    ]
    named += [*found.folders, *(found.sites if with_packages else ()), *_SYSTEM_READ]
    existing: list[str] = []
    # Python may have been moved since it was built; its old place may be unreadable.
    for path in map(Path, filter(os.path.exists, named)):
        existing += [str(p) for p in (*_link_chain(path), path.resolve()) if os.path.exists(p)]
    return tuple(_without_nested(dict.fromkeys(existing)))


def _package_folders(paths: tuple[str, ...]) -> list[str]:
    """Other interpreters' packages among them: a virtual environment's base, the system's own Python."""
    patterns = ("site-packages", "dist-packages", "python3*/site-packages", "python3*/dist-packages")
    return [
        hit for path in paths for pattern in patterns for hit in glob.glob(f"{glob.escape(path)}/{pattern}")
    ]


def _masks(mounts: tuple[str, ...], hidden: set[str]) -> list[str]:
    """Return each hidden folder by every name under which a mount shows it (`/lib` is often a link to `/usr/lib`)."""
    found = []
    for mount in mounts:
        real = os.path.realpath(mount)
        found += [mount + folder[len(real) :] for folder in hidden if folder.startswith(f"{real}/")]
    return sorted(found)


def _expanded(paths: tuple[str, ...], hidden: set[str]) -> tuple[list[str], list[str]]:
    """Replace what holds a hidden folder by what lies beside it; return the paths, and the folders so opened.

    A Landlock rule holds for all that is beneath it and cannot be taken back further down.
    """
    read: list[str] = []
    listed: list[str] = []
    seen: set[str] = set()
    # What is reached without a link first: that is the name under which Python itself looks.
    waiting = sorted(paths, key=lambda path: os.path.realpath(path) != path)
    while waiting:
        path = waiting.pop(0)
        real = os.path.realpath(path)
        if real in seen or real in hidden:
            continue
        seen.add(real)
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
    """Return the paths without those that lie inside another one."""
    return [p for p in paths if not any(p != other and p.startswith(f"{other}/") for other in paths)]


def _last_line(error: Exception) -> str:
    """Return what went wrong, in short: the interpreter's own last line where it wrote any."""
    said = getattr(error, "stderr", None)
    lines = said.decode(errors="replace").strip().splitlines() if isinstance(said, bytes) else []
    return (lines[-1] if lines else str(error)).rstrip(".")
