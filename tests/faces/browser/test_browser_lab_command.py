"""JupyterLab as `healkit lab` opens it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_lab import CONNECTED, ROOT, SLOW_MS, TOKEN, Lab
from playwright.sync_api import BrowserContext, Page, expect
from waiting import WITHIN_S, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def started(tmp_path: Path) -> Iterator[str]:
    """Start `healkit lab` in a folder of one's own, with nothing configured but the extension; return the address."""
    home, folder = tmp_path / "home", tmp_path / "work"
    folder.mkdir()
    extensions = home / "data" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / "healkit").symlink_to(ROOT / "healkit" / "labextension")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if name != "HEALKIT_DB"}
    environment |= {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "xdg"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    words = [
        "lab",
        "--no-browser",
        "--port",
        str(port),
        f"--IdentityProvider.token={TOKEN}",
        "--LabApp.news_url=None",
    ]
    words += ["--LabApp.expose_app_in_browser=True"]
    command = [sys.executable, "-m", "healkit", *words]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
        url = f"http://127.0.0.1:{port}"

        def answers() -> bool:
            assert process.poll() is None, (tmp_path / "log").read_text()
            try:
                with urllib.request.urlopen(f"{url}/api", timeout=WITHIN_S):
                    return True
            except OSError:
                return False

        try:
            wait_until(answers)
            yield url
        finally:
            lab = Lab(url, TOKEN, folder, home)
            for kernel in lab.kernels():
                lab.api("DELETE", f"api/kernels/{kernel}")
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=WITHIN_S)
                raise


def opened(page: Page, url: str) -> None:
    """Open the address that `healkit lab` prints, and wait until JupyterLab has put everything in its place."""
    page.goto(f"{url}/?token={TOKEN}")
    page.wait_for_function(
        CONNECTED, timeout=SLOW_MS
    )  # the lesson's kernel: a server that is stopped before waits for it


@pytest.mark.requirement("FACE-9")
def test_the_lab_opens_with_the_first_lesson_and_the_side_panel_which_stays_as_you_leave_it(
    started: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.set_default_timeout(SLOW_MS)
    opened(page, started)
    panel = page.locator("#healkit-side-panel")
    expect(panel.get_by_role("tab", name="Tools")).to_be_visible(timeout=SLOW_MS)
    panel.get_by_role("tab", name="Tools").click()
    expect(panel.get_by_text("word_count").first).to_be_visible()  # the vault that it has seeded
    expect(page.locator(".jp-NotebookPanel")).to_be_visible()
    assert "/lab/tree/healkit-lessons/01_your_own_cells.ipynb" in page.url

    page.evaluate("() => jupyterapp.shell.collapseRight()")
    expect(panel).to_be_hidden()
    with page.expect_response(
        lambda response: "/api/workspaces/" in response.url and response.request.method == "PUT"
    ):
        pass  # JupyterLab has saved its layout
    opened(page, started)
    expect(page.locator(".hk-lab-status")).to_be_visible(timeout=SLOW_MS)  # healkit has started
    expect(panel).to_be_hidden()
    page.wait_for_load_state(
        "networkidle"
    )  # a server that is stopped while it answers waits for anyio's thread
    page.close()
