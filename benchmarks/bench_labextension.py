"""Cost of the JupyterLab extension: size, start, button.

A page is loaded in turn with the extension and with it disabled, in one Chromium with a warm cache. `start_ms` is the
time from the navigation to the page's restored state (`app.restored`), and `cost_ms` the median of the differences
between neighbours. Prints one JSON object.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

ROUNDS = 25
ROOT = Path(__file__).parents[1]
EXTENSION = ROOT / "healkit" / "labextension"
QUIET = {"buildCheck": False, "buildAvailable": False}
RESTORED = "() => window.jupyterapp?.restored.then(() => performance.now())"


def main() -> None:
    """Measure and print."""
    scripts = [path.read_bytes() for path in (EXTENSION / "static").glob("*.js")]
    measured: dict[str, Any] = {"gzipped_bytes": sum(len(gzip.compress(one, mtime=0)) for one in scripts)}
    with tempfile.TemporaryDirectory() as folder:
        measured |= started(Path(folder))
    print(json.dumps(measured, indent=2))


def started(home: Path) -> dict[str, Any]:
    """Start JupyterLab, and load its page with and without the extension."""
    for name in ("data/labextensions", "config/labconfig", "work"):
        (home / name).mkdir(parents=True)
    (home / "data/labextensions/healkit").symlink_to(EXTENSION)
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port = asked.getsockname()[1]
    environment = {
        **os.environ,
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "HEALKIT_DB": str(home / "healkit.db"),
    }
    words = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    words += [f"--ServerApp.root_dir={home / 'work'}", "--IdentityProvider.token=", "--ip=127.0.0.1"]
    words += ["--LabApp.expose_app_in_browser=True", "--ServerApp.disable_check_xsrf=True"]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        try:
            return pages(f"http://127.0.0.1:{port}", home)
        finally:
            server.terminate()
            server.wait(20)


def pages(url: str, home: Path) -> dict[str, Any]:
    """Load pages in turn; the first of each kind only fills the cache."""
    until = time.monotonic() + 90
    while True:
        try:
            urllib.request.urlopen(f"{url}/api/status", timeout=5)
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
    times: dict[bool, list[float]] = {True: [], False: []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            home / "chromium", executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        for number in range(ROUNDS + 1):
            for enabled in (True, False) if number % 2 else (False, True):
                took = load(page, url, home, enabled=enabled)
                if number:
                    times[enabled].append(took)
        browser.close()
    with_it, without = times[True], times[False]
    return {
        "start_ms_with": round(statistics.median(with_it)),
        "start_ms_without": round(statistics.median(without)),
        "cost_ms": round(statistics.median(a - b for a, b in zip(with_it, without, strict=True))),
        "cost_ms_best": round(min(with_it) - min(without)),
    }


def load(page: Page, url: str, home: Path, *, enabled: bool) -> float:
    """Load JupyterLab's page, and return how long it took, in milliseconds."""
    config = {**QUIET, "disabledExtensions": {} if enabled else {"healkit": True}}
    (home / "config/labconfig/page_config.json").write_text(json.dumps(config))
    page.goto(f"{url}/lab?reset", wait_until="commit")
    page.wait_for_function("window.jupyterapp !== undefined")
    took: float = page.evaluate(RESTORED)
    return took


if __name__ == "__main__":
    main()
