"""Hosts of the probes, one for each tier."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import healkit

HERE = Path(__file__).parent
#: An id that owns nothing.
_NOBODY = 65534
USERS = ("root", "ordinary") if os.getuid() == 0 else ("ordinary",)
#: A host is one tier and one user.
Host = tuple[str, str]
Facts = dict[str, Any]
RESTRICTED: list[Host] = [(tier, user) for tier in ("namespaces", "landlock") for user in USERS]
UNRESTRICTED: list[Host] = [("process", user) for user in USERS]
#: The one that the quick tier tries.
QUICK = RESTRICTED[0]
#: How many workers there are at a time, in all hosts together and in one of them. Most of them wait.
_AT_A_TIME_PER_CORE, _AT_A_TIME = 4, 8
#: Less than the tests' own limit, so that what a host says of its end is seen.
_HOST_S = 540


@dataclasses.dataclass(frozen=True)
class User:
    """Interpreter and its user: `uid` is None for the user that runs the tests."""

    python: str
    uid: int | None
    folder: Path
    site: Path
    probes: Path


@pytest.fixture(
    params=[
        pytest.param(host, id="-".join(host), marks=[] if host == QUICK else [pytest.mark.slow])
        for host in RESTRICTED
    ]
)
def host(request: pytest.FixtureRequest) -> Host:
    """Return the host of a tier and a user: each tier that is a boundary, each user that the tests can be."""
    found: Host = request.param
    return found


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """Make a folder that another user may pass through; its path is short, because the paths of sockets are limited."""
    folder = Path(tempfile.mkdtemp(prefix="hk-esc-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def user_named(short_folder: Path) -> Callable[[str], User]:
    """Return those who run hosts, by their names in `USERS`."""
    site = Path(healkit.__file__).parent.parent

    @functools.cache
    def made(name: str) -> User:
        own = name == USERS[0]
        return User(sys.executable, None, short_folder, site, HERE) if own else _ordinary_user(short_folder)

    return made


@pytest.fixture(scope="session")
def running(
    request: pytest.FixtureRequest, short_folder: Path, user_named: Callable[[str], User]
) -> Iterator[dict[Host, Future[Facts]]]:
    """Start the hosts of the probes that this run's tests look at, all with the first of these tests."""
    items = request.session.items
    runs = any(isinstance(item, pytest.Function) and "runs" in item.fixturenames for item in items)
    words = ("escape_host.py", "runs" if runs else "batch only")
    with _started(_wanted(items, "running"), user_named, short_folder, *words) as found:
        yield found


@pytest.fixture(scope="session")
def writing(
    request: pytest.FixtureRequest, short_folder: Path, user_named: Callable[[str], User]
) -> Iterator[dict[Host, Future[Facts]]]:
    """Start the hosts of the ways to write past the limit, all with the first test that looks at one."""
    hosts = _wanted(request.session.items, "writing")
    with _started(hosts, user_named, short_folder, "scratch_host.py") as found:
        yield found


@contextlib.contextmanager
def _started(
    hosts: list[Host], user_named: Callable[[str], User], folder: Path, *words: str
) -> Iterator[dict[Host, Future[Facts]]]:
    users = {name: user_named(name) for _, name in hosts}
    cores = len(os.sched_getaffinity(0))
    at_a_time = max(1, min(_AT_A_TIME, _AT_A_TIME_PER_CORE * cores // len(hosts)))
    with ThreadPoolExecutor(len(hosts)) as threads:
        yield {
            host: threads.submit(_tried, users[host[1]], host, folder, at_a_time, *words) for host in hosts
        }


def _wanted(items: Sequence[pytest.Item], fixture: str) -> list[Host]:
    """Return the hosts that these tests look at."""
    found: dict[Host, None] = {}
    for item in items:
        if isinstance(item, pytest.Function) and fixture in item.fixturenames:
            chosen = [item.callspec.params["host"]] if "host" in item.fixturenames else UNRESTRICTED
            found |= dict.fromkeys(chosen)
    return list(found)


@pytest.fixture
def batch(host: Host, running: dict[Host, Future[Facts]]) -> Facts:
    """Return the result of every probe there."""
    found: Facts = running[host].result()["batch"]
    return found


@pytest.fixture
def runs(host: Host, running: dict[Host, Future[Facts]]) -> Facts:
    """Return the result of every run there; they start some fifty workers, and belong to slow tests."""
    found: Facts = running[host].result()["runs"]
    return found


@pytest.fixture
def written(host: Host, writing: dict[Host, Future[Facts]]) -> Facts:
    """Return the result of every way to write past the limit there."""
    return writing[host].result()


@pytest.fixture
def unrestricted(running: dict[Host, Future[Facts]]) -> list[Facts]:
    """Return the result of every probe without a boundary, for each user."""
    return [running[host].result() for host in UNRESTRICTED]


def _tried(user: User, host: Host, short_folder: Path, at_a_time: int, script: str, *words: str) -> Facts:
    """Run a host as that user; it prints one JSON object."""
    tier, name = host
    folder = short_folder / f"{tier[0]}-{name}-{script[0]}"
    folder.mkdir()
    (folder / "tmp").mkdir()
    identity: dict[str, Any] = {}
    if user.uid is not None:
        for path in (folder, folder / "tmp"):
            os.chown(path, user.uid, user.uid)
        identity = {"user": user.uid, "group": user.uid, "extra_groups": []}
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": str(user.site),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [user.python, str(user.probes / script), tier, str(folder), str(at_a_time), *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_HOST_S,
        check=False,
        **identity,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: Facts = json.loads(done.stdout)
    return found


def _ordinary_user(folder: Path) -> User:
    """Make the interpreter and its packages readable for an ordinary user: as links, which take no room.

    An interpreter often lies in root's home, which no other user may enter; that folder stays as it is.
    """
    base, venv, site, probes = (folder / name for name in ("base", "venv", "site", "probes"))
    _link_tree(Path(sys.base_prefix), base)
    packages = Path(sysconfig.get_path("purelib"))
    theirs = venv / packages.relative_to(sys.prefix)
    for parent in (venv / "bin", theirs.parent):
        parent.mkdir(parents=True)
    if _passable(packages):
        theirs.symlink_to(packages)
    else:
        _link_tree(packages, theirs)
    shutil.copytree(
        Path(healkit.__file__).parent, site / "healkit", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(HERE, probes, ignore=shutil.ignore_patterns("__pycache__"))
    executable = base / "bin" / Path(os.path.realpath(sys.executable)).name
    _relocate(executable)
    for name in dict.fromkeys(("python", "python3", executable.name)):
        (venv / "bin" / name).symlink_to(executable)
    (venv / "pyvenv.cfg").write_text(f"home = {base / 'bin'}\ninclude-system-site-packages = false\n")
    return User(str(venv / "bin" / "python"), _NOBODY, folder, site, probes)


def _passable(folder: Path) -> bool:
    """Tell if any user may go there and read."""
    return all(path.stat().st_mode & 0o005 == 0o005 for path in (folder, *folder.parents))


def _link_tree(source: Path, target: Path) -> None:
    def link(file: str, copy: str) -> str:
        try:
            os.link(file, copy, follow_symlinks=False)
        except OSError:  # another file system
            shutil.copy2(file, copy, follow_symlinks=False)
        return copy

    shutil.copytree(source, target, symlinks=True, copy_function=link, ignore=_left_out)


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Name what no worker needs of the interpreter: tests, headers, other packages."""
    unneeded = {"test", "idlelib", "tkinter", "include", "share", "site-packages"}
    return unneeded & set(names) if Path(folder).is_relative_to(sys.base_prefix) else set()


def _relocate(executable: Path) -> None:
    """Let a copied interpreter find its copied library: the path that was compiled in becomes the copy's.

    Not `$ORIGIN/../lib`: bubblewrap leaves an ordinary user's worker a capability, and the loader ignores `$ORIGIN` in a
    program that starts with more rights than its parent.
    """
    compiled_in = (sysconfig.get_config_var("LIBDIR") or "").encode()
    content = executable.read_bytes()
    if compiled_in and b"\0" + compiled_in + b"\0" in content:
        beside = str(executable.parent.parent / "lib").encode()
        assert len(beside) <= len(compiled_in), f"{beside!r} has no room in the place of {compiled_in!r}"
        content = content.replace(
            b"\0" + compiled_in + b"\0", b"\0" + beside.ljust(len(compiled_in), b"\0") + b"\0"
        )
    executable.unlink()  # a link to the original until here
    executable.write_bytes(content)
    executable.chmod(0o755)
