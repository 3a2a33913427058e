"""JupyterLab and Chromium, both real, for all tests.

Chromium is Debian's; all tests share its disk cache too.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from browser_lab import CLOSE, LAB, ROOT, TOKEN, Lab, Notebook, SharedKernel
from playwright.sync_api import BrowserContext, Page, sync_playwright

START_S = 90
FAILED = pytest.StashKey[bool]()
PAGE_CONFIG: dict[str, Any] = {"buildCheck": False, "buildAvailable": False}


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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Callable[[], None]]]:
    """JupyterLab with settings and kernels of its own, and without what asks the world outside or looks for it.

    It comes with what waits until it has started: Chromium starts at the same time.
    """
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
    extensions = home / "data" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / "healkit").symlink_to(ROOT / "healkit" / "labextension")
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = '{"fetchNews": "false", "checkForUpdates": false}'
    (settings / "notification.jupyterlab-settings").write_text(quiet)
    # Each page would ask whether JupyterLab is to be built anew, and the server would start node to find out.
    config = home / "config" / "labconfig"
    config.mkdir(parents=True)
    (config / "page_config.json").write_text(json.dumps(PAGE_CONFIG))
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        begun = Lab(f"http://127.0.0.1:{port}", TOKEN, folder, config / "page_config.json")
        try:
            yield begun, lambda: _wait_for(begun, process, home / "server.log")
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=20)


@pytest.fixture(scope="module")
def lab(server: tuple[Lab, Callable[[], None]], browser: BrowserContext) -> Iterator[Lab]:
    """Lend the server on an empty folder, and so with an empty database: each file's tests see only their own."""
    started, wait = server
    wait()
    assert list(started.folder.iterdir()) == []
    yield started
    for path in started.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture(scope="module")
def kernel(lab: Lab) -> Iterator[SharedKernel]:
    """Lend the kernel of the file's notebooks."""
    shared = SharedKernel(lab)
    yield shared
    shared.end()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the script of axe-core, of the version that js/package-lock.json names."""
    folder = tmp_path_factory.mktemp("axe")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / "js" / name, folder)
    done = subprocess.run(
        ["npm", "ci", "--ignore-scripts"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


class Window:
    """Page of JupyterLab in which one notebook after another is opened: to load it anew would take seconds."""

    page: Page | None = None


@pytest.fixture(scope="module")
def window(lab: Lab, browser: BrowserContext) -> Iterator[Window]:
    """Lend the page of the file's notebooks; what they left in the browser goes with it, but for the cache of files."""
    yield Window()
    empty = browser.new_page()
    _close_pages(browser, empty)
    browser.clear_cookies()
    kinds = {"origin": lab.url, "storageTypes": "local_storage,indexeddb,service_workers,cache_storage"}
    browser.new_cdp_session(empty).send("Storage.clearDataForOrigin", kinds)


@pytest.fixture
def disabled(lab: Lab, window: Window) -> Iterator[None]:
    """Disable healkit's extension in pages that are loaded from now on, as `jupyter labextension disable healkit` does.

    To be named before `notebook`: the page that the file's tests share is closed by then.
    """
    window.page = None
    lab.page_config.write_text(json.dumps({**PAGE_CONFIG, "disabledExtensions": {"healkit": True}}))
    yield
    window.page = None
    lab.page_config.write_text(json.dumps(PAGE_CONFIG))


@pytest.fixture
def notebook(
    lab: Lab, browser: BrowserContext, window: Window, kernel: SharedKernel, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Notebook]]:
    """Open a notebook with these cells; in JupyterLab without its sidebars, in the page that the file's tests share."""
    opened: list[Notebook] = []

    def make(name: str, *cells: str, width: int = 1280, height: int = 900, view: str = LAB) -> Notebook:
        book = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        )
        path = lab.folder / f"{name}.ipynb"
        nbformat.write(book, path)
        kernel.begin(path)
        in_place = view == LAB and window.page is not None
        page = window.page if in_place else browser.new_page()
        page.set_viewport_size({"width": width, "height": height})
        opened.append(Notebook(lab, page, path, view))
        if in_place:
            page.bring_to_front()
            opened[-1].open_in_place()
        else:
            opened[-1].open()
        return opened[-1]

    yield make
    if FAILED in request.node.stash:  # what it left is nothing that another test could begin with
        window.page = None
        kernel.end()
    for one in opened:
        if FAILED not in request.node.stash:
            kernel.empty(one.page)
            if one.view == LAB:
                window.page = one.page
                one.page.evaluate(CLOSE)
        one.let_go()
    _close_pages(browser, window.page or browser.new_page())
    browser.clear_permissions()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Remember for the fixtures that a test has failed."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


def _close_pages(browser: BrowserContext, but: Page) -> None:
    for page in browser.pages:
        if page != but:
            page.close()


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


def _wait_for(lab: Lab, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and server.poll() is None:
        try:
            lab.api("GET", "api/status")
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
