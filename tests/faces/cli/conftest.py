"""Command line as a user has it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_samples import Done, call
from trusted import trusted_copy
from waiting import WITHIN_S

Cli = Callable[..., Done]
CliProcess = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Make an environment whose default database is in a folder of the test's."""
    data = {"HEALKIT_DB": str(tmp_path / "healkit.db"), "XDG_DATA_HOME": str(tmp_path / "share")}
    return {**os.environ, **data, "PYTHONIOENCODING": "utf-8", "COLUMNS": "120"}


@pytest.fixture
def cli(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run `healkit WORDS…` in this process, with `stdin` where given."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture
def cli_process(environment: dict[str, str], tmp_path: Path) -> CliProcess:
    """Run `healkit WORDS…` in a process of its own, which takes a second longer."""

    def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "healkit", *words]
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            timeout=WITHIN_S,
            check=False,
        )

    return run


@pytest.fixture
def fibonacci(cli: Cli, environment: dict[str, str], empty_database: Path) -> Cli:
    """`cli` with a broken fibonacci in the vault."""
    trusted_copy(empty_database, environment["HEALKIT_DB"])
    code = "def fibonacci(n: int):\n    print('working on', n)\n    return n / 0\n"
    assert cli("vault", "add", "fibonacci", "-", stdin=code).stdout == "fibonacci v1 saved\n"
    return cli
