"""Who the hosts of the probes are: this user, and as root also an ordinary one."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import healkit

HERE = Path(__file__).parent
#: An id that owns nothing.
_NOBODY = 65534
USERS = ("root", "ordinary") if os.getuid() == 0 else ("ordinary",)


@dataclasses.dataclass(frozen=True)
class User:
    """An interpreter, and who runs it: `uid` None for whoever runs the tests."""

    python: str
    uid: int | None
    folder: Path
    site: Path
    probes: Path


@pytest.fixture(params=["namespaces", "landlock"])
def tier(request: pytest.FixtureRequest) -> str:
    """Every tier that is a boundary."""
    return str(request.param)


@pytest.fixture
def users() -> tuple[str, ...]:
    """The names of all of them."""
    return USERS


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest) -> str:
    """Everybody that the tests can be."""
    return str(request.param)


Facts = Callable[[str, str], dict[str, Any]]


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """A folder with a short path, because the paths of sockets are limited, that another user may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="hk-esc-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def facts(short_folder: Path) -> Facts:
    """What came of every probe: `facts(tier, user)`, tried once for each."""

    @functools.cache
    def users(name: str) -> User:
        if name == "root" or os.getuid() != 0:
            return User(sys.executable, None, short_folder, Path(healkit.__file__).parent.parent, HERE)
        return _ordinary_user(short_folder)

    made: dict[tuple[str, str], dict[str, Any] | BaseException] = {}

    def tried(tier: str, name: str) -> dict[str, Any]:
        if (tier, name) not in made:
            try:
                made[tier, name] = _host(users(name), tier, short_folder / f"{tier[0]}-{name}")
            except Exception as error:  # the first failure is every test's: not a minute more for each
                made[tier, name] = error
        found = made[tier, name]
        if isinstance(found, BaseException):
            raise found
        return found

    return tried


def _host(user: User, tier: str, folder: Path) -> dict[str, Any]:
    """Run `escape_host.py` as that user; it prints one JSON object."""
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
        [user.python, str(user.probes / "escape_host.py"), tier, str(folder)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        **identity,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _ordinary_user(folder: Path) -> User:
    """The interpreter and its packages where an ordinary user can read them: as links, which take no room.

    An interpreter often lies in root's home, which nobody else may enter; that folder is left alone.
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
    """Whether anybody may go there and read."""
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
    """What no worker needs of the interpreter: tests, headers, other packages."""
    unneeded = {"test", "idlelib", "tkinter", "include", "share", "site-packages"}
    return unneeded & set(names) if Path(folder).is_relative_to(sys.base_prefix) else set()


def _relocate(executable: Path) -> None:
    """Let a copied interpreter find its copied library: the path that was compiled in becomes one beside it."""
    compiled_in = (sysconfig.get_config_var("LIBDIR") or "").encode()
    content = executable.read_bytes()
    if compiled_in and b"\0" + compiled_in + b"\0" in content:
        beside = b"$ORIGIN/../lib"
        assert len(beside) <= len(compiled_in), compiled_in
        content = content.replace(
            b"\0" + compiled_in + b"\0", b"\0" + beside.ljust(len(compiled_in), b"\0") + b"\0"
        )
    executable.unlink()  # a link to the original until here
    executable.write_bytes(content)
    executable.chmod(0o755)
