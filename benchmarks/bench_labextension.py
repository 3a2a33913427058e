"""Cost of the JupyterLab extension: size, start, scroll, fix.

    python benchmarks/bench_labextension.py [start] [scroll] [fix]

`start`: a page is loaded in turn with the extension and with it disabled, in one Chromium with a warm cache. `start_ms`
is the time from the navigation to the page's restored state (`app.restored`). `cost_ms` is the median of the
differences between neighbours.

`scroll`: a notebook of 200 cells is scrolled from top to bottom, in turn with the extension and without. 50 cells have
an error and its card. `frame_ms` are the times between frames, `drawn_ms` is the time from opening it to its last cell.
`typed_ms` is the longest frame while a key is held down in a failed cell.

`fix`: the gallery's failing lessons, and failing pandas cells, from the press on Fix to the proposal.

Prints one JSON object.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import BrowserContext, Page, sync_playwright

from healkit import Healkit
from healkit.errors import ToolExecutionError
from healkit.faces.notebook.cards import of_tool
from healkit.parts.teach.gallery import LESSONS

ROUNDS = 25
ROOT = Path(__file__).parents[1]
EXTENSION = ROOT / "healkit" / "labextension"
QUIET = {"buildCheck": False, "buildAvailable": False}
SCROLLS, CELLS = 5, 200
PYTHON = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
FAILING = [lesson for lesson in LESSONS if lesson.type == "python" and lesson.ename is not None]
ORDERS = 'import pandas as pd\norders = pd.DataFrame({"revenue": [1.5, 2.5], "region": ["a", "b"], "day": ["1", "2"]})'
PANDAS = (
    "orders.groupby('region')['revnue'].sum()",
    "orders['Region'].nunique()",
    "orders.sort_values('revenues')",
    "orders.loc[0, 'regio']",
    "orders.drop(columns='days')",
)
#: Whether all cells are in the notebook.
ALL_CELLS = "(n) => jupyterapp.shell.currentWidget?.content?.widgets?.length === n"
IDLE = """() => {
  const kernel = jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel;
  return kernel?.connectionStatus === "connected" && kernel.status === "idle";
}"""
RUN = """async (at) => {
  const { content } = jupyterapp.shell.currentWidget;
  content.activeCellIndex = at;
  await jupyterapp.commands.execute("notebook:run-cell");
}"""
#: Presses Fix in a cell, and waits until it shows a proposal, a question, or that there is none.
PRESS = """(at) => new Promise((done, failed) => {
  const { node } = jupyterapp.shell.currentWidget.content.widgets[at];
  const found = '[aria-label="consent"], [aria-label="proposal"], [aria-label="question"]';
  const ended = '[aria-label="report"]';
  const begun = performance.now();
  const look = () => {
    if (node.querySelector(found)) done((performance.now() - begun) / 1000);
    else if (node.querySelector(ended) || performance.now() - begun > 60000) failed(new Error(node.innerText));
    else requestAnimationFrame(look);
  };
  node.querySelector(".hk-lab-fix").click();
  look();
})"""
#: Scrolls through the notebook; returns the times between frames.
SCROLL = """() => new Promise((done) => {
  const outer = document.querySelector(".jp-Notebook .jp-WindowedPanel-outer, .jp-WindowedPanel-outer");
  const frames = [];
  let last = null;
  const step = (now) => {
    if (last !== null) frames.push(now - last);
    last = now;
    const before = outer.scrollTop;
    outer.scrollTop += 60;
    if (outer.scrollTop === before) done({ frames });
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""
#: Changes a failed cell 60 times, once per frame; returns the longest frame.
TYPE = """(near) => new Promise((done) => {
  const { widgets } = jupyterapp.shell.currentWidget.content;
  const cell = widgets.slice(near).find(({ model }) => model.outputs?.length === 2);
  let last = null, longest = 0, left = 60;
  const step = (now) => {
    if (last !== null) longest = Math.max(longest, now - last);
    last = now;
    if ((left -= 1) < 0) return done({ typed: longest });
    cell.model.sharedModel.updateSource(0, 0, "#");
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""
RESTORED = "() => window.jupyterapp?.restored.then(() => performance.now())"


def main() -> None:
    """Measure and print."""
    scripts = [path.read_bytes() for path in (EXTENSION / "static").glob("*.js")]
    measured: dict[str, Any] = {"gzipped_bytes": sum(len(gzip.compress(one, mtime=0)) for one in scripts)}
    parts = {"start": pages, "scroll": scrolled, "fix": fixed}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["XDG_DATA_HOME"] = str(home / "share")  # databases made here are trusted there
        with served(home) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch_persistent_context(
                home / "chromium", executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            for name in sys.argv[1:] or parts:
                measured |= {f"{name}_load_average": os.getloadavg()[0], **parts[name](browser, url, home)}
            browser.close()
    print(json.dumps(measured, indent=2))


@contextmanager
def served(home: Path) -> Iterator[str]:
    """Run JupyterLab in its own folders, and yield its address."""
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
    url = f"http://127.0.0.1:{port}"
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        try:
            until = time.monotonic() + 90
            while True:
                try:
                    urllib.request.urlopen(f"{url}/api/status", timeout=5)
                    break
                except OSError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.2)
            yield url
        finally:
            server.terminate()
            server.wait(20)


def pages(browser: BrowserContext, url: str, home: Path) -> dict[str, Any]:
    """Load pages in turn; the first of each kind only fills the cache."""
    times: dict[bool, list[float]] = {True: [], False: []}
    page = browser.new_page()
    for number in range(ROUNDS + 1):
        for enabled in (True, False) if number % 2 else (False, True):
            took = load(page, url, home, enabled=enabled)
            if number:
                times[enabled].append(took)
    page.close()
    with_it, without = times[True], times[False]
    return {
        "start_ms_with": round(statistics.median(with_it)),
        "start_ms_without": round(statistics.median(without)),
        "cost_ms": round(statistics.median(a - b for a, b in zip(with_it, without, strict=True))),
        "cost_ms_best": round(min(with_it) - min(without)),
    }


def load(page: Page, url: str, home: Path, *, enabled: bool, path: str = "") -> float:
    """Load JupyterLab's page, and return the time, in milliseconds."""
    config = {**QUIET, "disabledExtensions": {} if enabled else {"healkit": True}}
    (home / "config/labconfig/page_config.json").write_text(json.dumps(config))
    page.goto(f"{url}/lab{path}?reset", wait_until="commit")
    page.wait_for_function("window.jupyterapp !== undefined")
    took: float = page.evaluate(RESTORED)
    return took


def scrolled(browser: BrowserContext, url: str, home: Path) -> dict[str, Any]:
    """Scroll through the same notebook in turn; the first of each kind only fills the cache."""
    nbformat.write(long_notebook(home), home / "work/long.ipynb")
    found: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    page = browser.new_page()
    page.set_viewport_size({"width": 1280, "height": 900})
    for number in range(SCROLLS + 1):
        for enabled in (True, False) if number % 2 else (False, True):
            load(page, url, home, enabled=enabled, path="/tree/long.ipynb")
            page.wait_for_function(ALL_CELLS, arg=CELLS, timeout=60_000)
            one = {"drawn_ms": page.evaluate("performance.now()"), **page.evaluate(SCROLL)}
            shown = page.locator(".hk-lab-fix").count()
            assert bool(shown) == enabled, shown
            one |= page.evaluate(TYPE, CELLS // 2)
            if number:
                found[enabled].append(one)
    page.close()
    told = {}
    for enabled, name in ((True, "with"), (False, "without")):
        frames = sorted(ms for one in found[enabled] for ms in one["frames"])
        at = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
        told[name] = {
            f"frame_ms_{mark}": round(frames[int((len(frames) - 1) * q)], 1) for mark, q in at.items()
        }
        told[name] |= {
            "frames": len(frames),
            "drawn_ms": round(statistics.median(one["drawn_ms"] for one in found[enabled])),
            "typed_ms": round(statistics.median(one["typed"] for one in found[enabled]), 1),
        }
    return {"scroll": told}


def long_notebook(home: Path) -> nbformat.NotebookNode:
    """Make a notebook in which every fourth cell has failed, with its traceback and its card."""
    made = []
    with Healkit(home / "long.db") as healkit:
        for lesson in FAILING:
            healkit.vault.add(lesson.name, lesson.code, examples=list(lesson.examples))
            source = f"%run_tool {lesson.name} {json.dumps(lesson.failing)}"
            try:
                healkit.execute_tool(lesson.name, arguments=lesson.failing)
            except ToolExecutionError as error:
                execution = healkit.last_error(lesson.name)
                assert execution is not None
                card = of_tool(healkit, execution, "fix", source=source)._repr_mimebundle_()
                lines = [f"  line {n} of a traceback, as long as they are in notebooks" for n in range(12)]
                raised = nbformat.v4.new_output(
                    "error", ename="ToolExecutionError", evalue=str(error), traceback=lines
                )
                outputs = [raised, nbformat.v4.new_output("display_data", card)]
                made.append(nbformat.v4.new_code_cell(source, execution_count=1, outputs=outputs))
    plain = [
        nbformat.v4.new_code_cell(
            f"for n in range(5):\n    print(n * {number})",
            outputs=[nbformat.v4.new_output("stream", text="0\n1\n2\n3\n4\n")],
            execution_count=number,
        )
        for number in range(CELLS)
    ]
    cells = [made[n // 4 % len(made)].copy() if n % 4 == 3 else plain[n] for n in range(CELLS)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return nbformat.v4.new_notebook(cells=cells, metadata=PYTHON)


def fixed(browser: BrowserContext, url: str, home: Path) -> dict[str, Any]:
    """Run failing cells, and press Fix on each."""
    with Healkit(home / "healkit.db") as healkit:
        for lesson in FAILING:
            healkit.vault.add(lesson.name, lesson.code, examples=list(lesson.examples))
    calls = [
        f"__import__('healkit').execute_tool({lesson.name!r}, arguments={lesson.failing!r})"
        for lesson in FAILING
    ]
    sources = ["%load_ext healkit", *calls, ORDERS, *PANDAS]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=PYTHON), home / "work/fix.ipynb")
    page = browser.new_page()
    load(page, url, home, enabled=True, path="/tree/fix.ipynb")
    page.wait_for_function(IDLE, timeout=60_000)
    tools, own = [], []
    for number, source in enumerate(sources):
        page.evaluate(RUN, number)
        if source in ("%load_ext healkit", ORDERS):
            continue
        cell = page.locator(".jp-Notebook .jp-Cell").nth(number)
        cell.locator(".hk").wait_for(timeout=60_000)
        took = page.evaluate(PRESS, number)
        (tools if source in calls else own).append(took)
        stop = cell.get_by_role("button", name="Decline", exact=True)
        if stop.count():
            stop.click()
    page.close()
    return {
        "fix_to_proposal_s": {
            name: {
                "n": len(times),
                "p50": round(statistics.median(times), 2),
                "max": round(max(times), 2),
                "first": round(times[0], 2),
            }
            for name, times in (("gallery", tools), ("pandas", own))
        }
    }


if __name__ == "__main__":
    main()
