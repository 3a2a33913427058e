"""A real JupyterLab for all tests, and Debian's Chromium to look at it, whose disk cache all tests share too."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from browser_lab import LAB, Lab, Notebook
from playwright.sync_api import BrowserContext, sync_playwright

TOKEN = "for-this-test-only"
START_S = 90


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chromium's folder: from its disk cache JupyterLab's scripts come compiled, a third of what a page costs."""
    return tmp_path_factory.mktemp("chromium")


# For the module and not the session: playwright keeps an event loop running in this thread, and no test after it could
# start one.
@pytest.fixture(scope="module")
def browser(profile: Path) -> Iterator[BrowserContext]:
    """Headless Chromium that fetches nothing of its own accord."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage"]
        opened = playwright.chromium.launch_persistent_context(profile, executable_path=found, args=flags)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab with settings and kernels of its own, and without what asks the world outside or looks for it."""
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
    words += [f"--{app}.expose_app_in_browser=True" for app in ("LabApp", "JupyterNotebookApp")]
    words += ["--ServerApp.jpserver_extensions={'jupyter_lsp': False, 'jupyter_server_terminals': False}"]
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = '{"fetchNews": "false", "checkForUpdates": false}'
    (settings / "notification.jupyterlab-settings").write_text(quiet)
    # Each page would ask whether JupyterLab is to be built anew, and the server would start node to find out.
    config = home / "config" / "labconfig"
    config.mkdir(parents=True)
    (config / "page_config.json").write_text(json.dumps({"buildCheck": False, "buildAvailable": False}))
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        try:
            _wait_for(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", process, home / "server.log")
            yield Lab(f"http://127.0.0.1:{port}", TOKEN, folder)
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=20)


@pytest.fixture(scope="module")
def lab(server: Lab) -> Iterator[Lab]:
    """The server on an empty folder, and so with an empty database: each file's tests see only their own."""
    assert list(server.folder.iterdir()) == []
    yield server
    for path in server.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def notebook(lab: Lab, browser: BrowserContext) -> Iterator[Callable[..., Notebook]]:
    """Open a notebook with these cells in a window of its own."""
    opened: list[Notebook] = []

    def make(name: str, *cells: str, width: int = 1280, height: int = 900, view: str = LAB) -> Notebook:
        book = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        )
        path = lab.folder / f"{name}.ipynb"
        nbformat.write(book, path)
        page = browser.new_page()
        page.set_viewport_size({"width": width, "height": height})
        opened.append(Notebook(lab, page, path, view))
        opened[-1].open()
        return opened[-1]

    yield make
    for one in opened:
        one.shut_down()
    _forget(browser, lab)


def _forget(browser: BrowserContext, lab: Lab) -> None:
    """Close all pages, and take away what they left in the browser, but for its cache of files."""
    empty = browser.new_page()
    for page in browser.pages:
        if page != empty:
            page.close()
    browser.clear_permissions()
    browser.clear_cookies()
    kinds = {"origin": lab.url, "storageTypes": "local_storage,indexeddb,service_workers,cache_storage"}
    browser.new_cdp_session(empty).send("Storage.clearDataForOrigin", kinds)


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
