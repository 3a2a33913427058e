"""The Python that runs a worker, and what of the file system it needs.

By default it is the one that healkit itself runs in; a tool's grants can name another (`python=`), and which of the
installed packages it sees (`packages=`). `view_of` turns both into mounts for the outside and rules for the inside.
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
from healkit.errors import ConfigError
from healkit.workers.inside import interpreter as inside

#: What a worker imports before it runs any tool; the bounds are those of pyproject.toml.
WORKER_NEEDS = ("ipykernel>=7.1", "msgspec>=0.19", "landlockpy>=0.2")
#: The oldest Python that the worker's side of this package can be imported in.
OLDEST = (3, 11)

_SYSTEM_READ = (
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/usr/share/fonts", "/usr/share/zoneinfo",
)  # fmt: skip
_ASK_TIMEOUT_S = 20.0


class Interpreter(msgspec.Struct, frozen=True):
    """One Python: `folders` hold its standard library and libpython, `sites` the packages installed for it."""

    executable: str
    prefix: str
    version: str
    folders: list[str]
    sites: list[str]
    markers: dict[str, str]


@dataclasses.dataclass(frozen=True)
class View:
    """What a worker sees of its interpreter.

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
    """This process's own, or the one behind that path, asked once; raises `ConfigError` for what is no fit Python."""
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
    """The requirements of a worker that are not installed for that interpreter; looked up anew each time."""
    from healkit.workers import packages  # here, not above: a worker with all packages needs none of it

    return packages.unmet(WORKER_NEEDS, interpreter_of(python).sites)


def install_command(python: str, missing: list[str]) -> str:
    """What to type so that they are."""
    return shlex.join([python, "-m", "pip", "install", *missing])


def package_paths(names: tuple[str, ...], python: str | None = None) -> tuple[str, ...]:
    """Where those distributions and all they depend on lie; raises `ConfigError` for one that is not installed."""
    from healkit.workers import packages

    found = interpreter_of(python)
    return packages.paths_of(names, tuple(found.sites), found.markers, found.executable)


@functools.cache
def interpreter_paths(python: str | None = None) -> tuple[str, ...]:
    """What every worker may read: interpreter, standard library, installed packages, this package, system libraries.

    Both the paths that `sys` names and where their links lead are listed, because a mount holds what it is given.
    """
    return _existing(interpreter_of(python), with_packages=True)


def view_of(python: str | None = None, granted: tuple[str, ...] | None = None) -> View:
    """The view of a worker whose grants name that interpreter and those packages; None stands for all of them.

    Raises `ConfigError`, as `package_paths` and `interpreter_of` do.
    """
    if granted is None:
        paths = interpreter_paths(python)
        return View(paths, (), (), paths, ())
    from packaging.requirements import Requirement

    needed = tuple(Requirement(text).name for text in WORKER_NEEDS)
    return _narrow_view(python, package_paths((*needed, *granted), python))


@functools.lru_cache(maxsize=32)
def _narrow_view(python: str | None, chosen: tuple[str, ...]) -> View:
    """All but the installed packages, and of those the chosen paths."""
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
    # Python may have been moved since it was built; where it lay then is perhaps not to be entered.
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
    """Each hidden folder by every name under which a mount shows it (`/lib` is often a link to `/usr/lib`)."""
    found = []
    for mount in mounts:
        real = os.path.realpath(mount)
        found += [mount + folder[len(real) :] for folder in hidden if folder.startswith(f"{real}/")]
    return sorted(found)


def _expanded(paths: tuple[str, ...], hidden: set[str]) -> tuple[list[str], list[str]]:
    """The paths, with what lies beside a hidden folder in the place of what holds it; and what was so opened.

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
    """The path and, while it is a link, what it points at: `python` → `python3` → `/usr/bin/python3.11`."""
    chain = [path]
    while chain[-1].is_symlink() and len(chain) < 10:
        chain.append(chain[-1].parent / chain[-1].readlink())
    return chain


def _without_nested(paths: dict[str, None]) -> list[str]:
    """The paths without those that lie inside another one of them."""
    return [p for p in paths if not any(p != other and p.startswith(f"{other}/") for other in paths)]


def _last_line(error: Exception) -> str:
    """What went wrong, short: the interpreter's own last words where it had any."""
    said = getattr(error, "stderr", None)
    lines = said.decode(errors="replace").strip().splitlines() if isinstance(said, bytes) else []
    return (lines[-1] if lines else str(error)).rstrip(".")
