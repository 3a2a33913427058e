"""The command line as a user has it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment whose default database is in a folder of the test's."""
    data = {"HEALKIT_DB": str(tmp_path / "healkit.db"), "XDG_DATA_HOME": str(tmp_path / "data")}
    return {**os.environ, **data, "PYTHONIOENCODING": "utf-8", "COLUMNS": "120"}


@pytest.fixture
def cli(environment: dict[str, str], tmp_path: Path) -> Cli:
    """Run `healkit WORDS…`, with `stdin` where given."""

    def run(*words: str, stdin: str = "", timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "healkit", *words]
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            timeout=timeout_s,
            check=False,
        )

    return run


@pytest.fixture
def fibonacci(cli: Cli) -> Cli:
    """The same, with a broken fibonacci in the vault."""
    code = "def fibonacci(n: int):\n    print('working on', n)\n    return n / 0\n"
    assert cli("vault", "add", "fibonacci", "-", stdin=code).stdout == "fibonacci@1 saved\n"
    return cli
