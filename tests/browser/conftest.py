"""A real JupyterLab, and Debian's Chromium to look at it; one of each for all tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from browser_lab import LAB, Lab, Notebook
from playwright.sync_api import Browser, Error, sync_playwright

TOKEN = "for-this-test-only"
START_S = 90


# For the module and not the session: playwright keeps an event loop running in this thread, and no test after it could
# start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium that fetches nothing of its own accord."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage"]
        opened = playwright.chromium.launch(executable_path=found, args=flags)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on an empty folder, with settings, kernels and a database of its own."""
    folder = tmp_path_factory.mktemp("lab")
    home = tmp_path_factory.mktemp("home")
    port = _free_port()
    environment = {
        **os.environ,
        "HEALKIT_DB": str(folder / "healkit.db"),
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    words = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    words += [f"--ServerApp.root_dir={folder}", f"--IdentityProvider.token={TOKEN}", "--ip=127.0.0.1"]
    words += ["--LabApp.expose_app_in_browser=True"]
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = '{"fetchNews": "false", "checkForUpdates": false}'
    (settings / "notification.jupyterlab-settings").write_text(quiet)
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        try:
            _wait_for(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", server, home / "server.log")
            yield Lab(f"http://127.0.0.1:{port}", TOKEN, folder)
        finally:
            server.terminate()
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(timeout=20)


@pytest.fixture
def notebook(lab: Lab, browser: Browser) -> Iterator[Callable[..., Notebook]]:
    """Open a notebook with these cells in a window of its own."""
    contexts: list[Any] = []
    opened: list[Notebook] = []

    def make(name: str, *cells: str, width: int = 1280, height: int = 900, view: str = LAB) -> Notebook:
        book = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        )
        path = lab.folder / f"{name}.ipynb"
        nbformat.write(book, path)
        context = browser.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        opened.append(Notebook(lab, context.new_page(), path, view))
        opened[-1].open()
        return opened[-1]

    yield make
    for one in opened:
        one.shut_down()
    for context in contexts:
        try:
            context.close()
        except Error:
            pass


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
