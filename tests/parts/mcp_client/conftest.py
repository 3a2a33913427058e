"""Real servers for the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_samples import WORKSHOP, HttpServer

from healkit import Healkit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make the folder that the workshop serves, with a file in it and a secret beside it."""
    served = tmp_path / "served"
    served.mkdir()
    (served / "note.txt").write_text("buy tea")
    (tmp_path / "secret.txt").write_text("42")
    return served


@pytest.fixture
def stdio(folder: Path) -> dict[str, Any]:
    """Return what connects to the workshop over stdio."""
    return {"command": [sys.executable, WORKSHOP, folder]}


@pytest.fixture
def http(folder: Path) -> Iterator[HttpServer]:
    """Start the workshop over streamable HTTP."""
    server = HttpServer(folder)
    yield server
    server.stop()


@pytest.fixture
def older_http(folder: Path) -> Iterator[HttpServer]:
    """Start the workshop in the protocol's older form, with sessions."""
    server = HttpServer(folder, WORKSHOP_OLDER="1")
    yield server
    server.stop()


@pytest.fixture(params=["stdio", pytest.param("http", marks=pytest.mark.slow)])
def reached(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return what connects to the workshop, over stdio and over HTTP in turn."""
    found = request.getfixturevalue(request.param)
    return {"url": found.url} if request.param == "http" else found


@pytest.fixture
def run(healkit: Healkit) -> Callable[..., Any]:
    """Run lines of code in a restricted worker as a tool that may call the server `shop`; the execution."""

    def run_(body: str, calls: tuple[str, ...] = ("shop.*",)) -> Any:
        code = "def probe():\n" + "".join(f"    {line}\n" for line in body.splitlines())
        name = f"probe_{len(healkit.vault.names())}"
        healkit.vault.add(name, code.replace("probe", name), grants={"calls": calls})
        return healkit.execute(name)

    return run_
