"""A PostgreSQL server of the tests' own: a new cluster in a temporary folder, reached by a socket in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_ROLE = "healkit"


def _program(name: str) -> str:
    """Where Debian keeps it, newest version first, else wherever it is."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    found = str(places[0]) if places else shutil.which(name)
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    return found


def _account() -> dict[str, Any]:
    """PostgreSQL refuses to run as root; its own account, or nobody's, does as well."""
    if os.geteuid() != 0:
        return {}
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return {"user": "postgres" if "postgres" in names else "nobody"}


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """The URL of an empty database; the server is gone at the end of the block."""
    initdb, ctl = _program("initdb"), _program("pg_ctl")
    account = _account()
    with tempfile.TemporaryDirectory(prefix="healkit-pg-") as name:
        folder = Path(name)
        if account:
            shutil.chown(folder, account["user"])
        data = folder / "data"
        run: dict[str, Any] = {**account, "check": True, "capture_output": True, "timeout": 60, "cwd": folder}
        subprocess.run([initdb, "-D", data, "-U", _ROLE, "-A", "trust", "-E", "UTF8", "--no-sync"], **run)
        options = f"-k {folder} -h '' -c fsync=off"
        log = folder / "log"
        try:
            subprocess.run([ctl, "start", "-w", "-D", data, "-o", options, "-l", log], **run)
            yield f"postgresql+psycopg://{_ROLE}@/postgres?host={folder}"
        finally:
            subprocess.run([ctl, "stop", "-D", data, "-m", "immediate"], **{**run, "check": False})
