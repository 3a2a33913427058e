"""JupyterLab and Notebook 7, used as a person does."""

from __future__ import annotations

import dataclasses
import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect
from waiting import wait_until

ROOT = Path(__file__).parents[3]
#: What the server asks for.
TOKEN = "for-this-test-only"
#: Two cores are shared with the kernels, the server and other tests.
SLOW_MS = 60_000
OUT = Path(__file__).parent / "out"
#: Where the server has one document in JupyterLab, JupyterLab with its sidebars, and Notebook 7.
LAB, WHOLE_LAB, NOTEBOOK_7 = "doc/tree", "lab/tree", "notebooks"

#: A prompt with a number: the cell has run, and runs no more.
_DONE = re.compile(r"\[\d+\]")
#: A line of a stack in the page's own bundle.
_PAGES_OWN = re.compile(r"/static/lab/jlab_core\.")
#: Seen once in many runs, as an output that was run again was taken away, and as a notebook was closed in an open page.
_PAGES_RACES = (
    "NotFoundError: Failed to execute 'removeChild' on 'Node'",
    "TypeError: Cannot read properties of null (reading 'promise')",
)

#: Whether the page's notebook talks to its kernel.
CONNECTED = """
() => {
  const kernel = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
  return kernel?.connectionStatus === "connected" && kernel.status === "idle";
}
"""

#: Open a notebook in JupyterLab's open page, as its file browser does; close those that are open.
OPEN = (
    "(path) => jupyterapp.commands.execute('docmanager:open', { path, factory: 'Notebook' }).then(() => null)"
)
CLOSE = "() => [...jupyterapp.shell.widgets('main')].forEach((widget) => widget.dispose())"

#: Make an open notebook the page's current document; a message box that was there meanwhile has kept it from being so.
ACTIVATE = """
(path) => {
  const { shell } = jupyterapp;
  for (const widget of shell.widgets("main")) if (widget.context?.path === path) shell.activateById(widget.id);
}
"""

#: Have the kernel run code that the notebook does not show; what it says of it.
TELL = """
(code) => {
  const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
  return kernel.requestExecute({ code, silent: true, store_history: false }).done.then(({ content }) => content);
}
"""

#: As on a page where healkit's extension is disabled: its panels do without it. And as it was before.
NO_EXTENSION = "() => { globalThis.__hidden ??= globalThis.__healkitLab; delete globalThis.__healkitLab; }"
EXTENSION = "() => { globalThis.__healkitLab ??= globalThis.__hidden; }"

#: What the notebook's newest panel remembers, as its kernel writes it.
MEMORY = "__import__('healkit.faces.notebook.widgets.panel', fromlist=['_open'])._open[-1]._memory"
ASK = """
(expression) => {
  const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
  const asked = { code: "", silent: true, store_history: false, user_expressions: { it: expression } };
  return kernel.requestExecute(asked).done.then(({ content }) => content.user_expressions.it.data["text/plain"]);
}
"""

#: Make a kernel as it was before its first cell, but for what it has imported and the fork server that is warm.
EMPTY = """
import os, sys
def empty():
    shell = get_ipython()
    if (panels := sys.modules.get("healkit.faces.notebook.widgets.panel")) is not None:
        panels.close_all()
    if (app := sys.modules.get("healkit.app")) is not None:
        for opened in list(app.open_healkits):
            opened.close()
    extension = sys.modules.get("healkit.faces.notebook.ipython_extension")
    if extension is not None and hasattr(shell, extension._ADDED):
        extension.take_out(shell)  # unloading would end the fork server
    shell.extension_manager.loaded.discard("healkit")
    os.environ.pop("HEALKIT_PANELS", None)
    shell.reset(new_session=True)
empty()
"""

#: How light an element's paper is, from 0 to 255.
LIGHTNESS = """(element) => {
  const text = getComputedStyle(element).backgroundColor;
  const [red, green, blue] = text.match(/[\\d.]+/g).map(Number);
  return ((red + green + blue) / 3) * (text.startsWith("color(") ? 255 : 1);
}"""

#: The lowest contrast of text on its background in an element, and the text that has it (WCAG 2.2, 1.4.3).
CONTRAST = """
(root) => {
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+(e-\\d+)?/g).map(Number);
    return text.startsWith("color(srgb") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3]));
  const paper = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  let worst = { ratio: 99, text: "" };
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest(".hk-html") || !element.offsetParent) continue;
    const style = getComputedStyle(element);
    if (style.visibility === "hidden" || element.getClientRects().length === 0) continue;
    const under = paper(element);
    const [a, b] = [luminance(over(parse(style.color), under)), luminance(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < worst.ratio) worst = { ratio, text: node.data.trim().slice(0, 60), kind: element.className };
  }
  return worst;
}
"""


@dataclasses.dataclass(frozen=True)
class Lab:
    """JupyterLab server that runs; `page_config` is the file of what each page of it begins with."""

    url: str
    token: str
    folder: Path
    page_config: Path

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the server itself."""
        request = urllib.request.Request(
            f"{self.url}/{path}",
            method=method,
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
            data=None if body is None else json.dumps(body).encode(),
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def kernels(self) -> set[str]:
        """Return the ids of the kernels; the server answers with its error 500 while one begins or ends."""

        def ask() -> list[set[str]]:
            try:
                return [{kernel["id"] for kernel in self.api("GET", "api/kernels")}]
            except urllib.error.HTTPError as error:
                if error.code != 500:
                    raise
                return []

        return wait_until(ask)[0]


class SharedKernel:
    """Kernel that the tests take turns with, each as if it were new: a new one would cost each test seconds."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.id: str | None = None

    def begin(self, path: Path) -> None:
        """Let a notebook have the kernel before it is opened."""
        kernel = {"name": "python3"} if self.id is None else {"id": self.id}
        asked = {"path": path.name, "name": path.name, "type": "notebook", "kernel": kernel}
        self.id = self.lab.api("POST", "api/sessions", asked)["kernel"]["id"]

    def empty(self, page: Page) -> None:
        """Make it as good as new; one that a test has killed is replaced by the next."""
        if self.id not in self.lab.kernels():
            self.end()
            return
        answer = page.evaluate(TELL, EMPTY)
        assert answer["status"] == "ok", answer

    def end(self) -> None:
        """End it, and whichever a page has started in its place."""
        for kernel in self.lab.kernels():
            self.lab.api("DELETE", f"api/kernels/{kernel}")
        self.id = None


class Notebook:
    """Notebook in a window; `view` is the server's address of the program that shows it."""

    def __init__(self, lab: Lab, page: Page, path: Path, view: str = LAB) -> None:
        self.lab, self.page, self.path, self.view = lab, page, path, view
        self.problems: list[str] = []
        self.dialogs: list[str] = []
        # A page that loads while others close theirs is at times asked which kernel it wants: the one it names.
        page.add_locator_handler(page.locator(".jp-Dialog"), self._agree)
        page.on("pageerror", self._note)
        page.set_default_timeout(SLOW_MS)

    def let_go(self) -> None:
        """Leave the page to others."""
        self.page.remove_listener("pageerror", self._note)
        self.page.remove_locator_handler(self.page.locator(".jp-Dialog"))

    def _note(self, error: Any) -> None:
        """Keep an error of the page; races of JupyterLab's own, with nothing else in their stack, are left out."""
        stack = error.stack or str(error)
        message, *frames = stack.splitlines()
        own = bool(frames) and all(_PAGES_OWN.search(frame) for frame in frames)
        if not (own and message.startswith(_PAGES_RACES)):
            self.problems.append(stack)

    def open(self) -> None:
        """Load the page, and wait until the kernel is there."""
        self.page.goto(f"{self.lab.url}/{self.view}/{self.path.name}?reset&token={self.lab.token}")
        self._shown()

    def open_in_place(self) -> None:
        """Open it in a page of JupyterLab that already exists."""
        self.page.evaluate(OPEN, self.path.name)
        self._shown()

    def _shown(self) -> None:
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=SLOW_MS)
        self.ready()

    def ready(self) -> None:
        """Wait until the kernel is connected and idle; before it is, what is typed to run a cell is dropped."""
        idle = self.page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
        idle.first.wait_for(state="attached", timeout=SLOW_MS)
        self.page.evaluate(ACTIVATE, self.path.name)
        self.page.wait_for_function(CONNECTED, timeout=SLOW_MS)

    def _agree(self, dialog: Locator) -> None:
        self.dialogs.append(dialog.inner_text())
        print("JupyterLab asked:", self.dialogs[-1])
        # The last button accepts; of a message that only tells something it closes it.
        dialog.locator(".jp-Dialog-footer button").last.click()

    def cell(self, number: int) -> Locator:
        """Return a cell, counted from 0."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def run(self, number: int) -> None:
        """Run a cell, and wait until it has ended."""
        prompt = self.cell(number).locator(".jp-InputPrompt")
        before = prompt.text_content()
        editor = self.cell(number).locator(".jp-InputArea-editor")
        for _ in range(4):  # a page that is still busy with starting drops what is typed
            editor.click()
            expect(editor.locator(".cm-content")).to_be_focused()
            self.page.keyboard.press("Control+Enter")
            try:
                expect(prompt).not_to_have_text(before or "", timeout=15_000)
                break
            except AssertionError:
                continue
        expect(prompt).to_have_text(_DONE, timeout=SLOW_MS)

    def panel(self, number: int) -> Locator:
        """Return the panel below a cell, ready to be used."""
        panel = self.cell(number).locator(".hk")
        panel.wait_for(timeout=SLOW_MS)
        return panel

    def cells(self) -> int:
        """Count them."""
        return self.page.locator(".jp-Notebook .jp-Cell").count()

    def save(self) -> dict[str, Any]:
        """Save, and return the file as it is then."""
        before = self.path.stat().st_mtime_ns
        self.cell(0).locator(".jp-InputArea-editor").click()
        self.page.keyboard.press("Control+s")

        def saved() -> str:
            text = self.path.read_text() if self.path.stat().st_mtime_ns != before else ""
            return text if text.endswith("}\n") else ""  # the server empties the file before it writes to it

        found: dict[str, Any] = json.loads(wait_until(saved))
        return found

    def wait_for_memory(self, text: str) -> None:
        """Wait until the newest panel remembers what was typed, as it does once the typing stops."""
        wait_until(lambda: text in self.page.evaluate(ASK, MEMORY))

    def choose_theme(self, name: str) -> None:
        """Switch JupyterLab's theme under the open page, as its menu does."""
        self.page.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", name)

    def kill_kernel(self) -> None:
        """End the kernel under the page, as a machine that runs out of memory does."""
        for session in self.lab.api("GET", "api/sessions"):
            if session["path"] == self.path.name:
                self.lab.api("DELETE", f"api/sessions/{session['id']}")

    def shot(self, name: str, of: Locator | None = None) -> None:
        """Take a picture for people, in `tests/faces/browser/out/`."""
        OUT.mkdir(exist_ok=True)
        (of or self.page).screenshot(path=OUT / f"{name}.png")
