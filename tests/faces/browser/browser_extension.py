"""JupyterLab's extension, as tests press and read it."""

from __future__ import annotations

import re

from browser_lab import SLOW_MS, Notebook
from playwright.sync_api import Locator, Page, expect

#: A tool whose name stands where `NAME` is; it fails, and has a fix.
TYPO = "def NAME(values: list):\n    total = sum(values)\n    return totl"
ORDERS = 'import pandas as pd\norders = pd.DataFrame({"revenue": [1.5, 2.5], "region": ["a", "b"]})'
SUM = "orders.groupby('region')['revnue'].sum()"
THEMES = ("JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast")

#: Whether the kernel of the notebook at that path is connected and idle.
READY = """
(path) => {
  const shown = [...jupyterapp.shell.widgets("main")].find(({ context }) => context?.path === path);
  const kernel = shown?.sessionContext?.session?.kernel;
  return kernel?.connectionStatus === "connected" && kernel.status === "idle";
}
"""


def fix_button(book: Notebook, number: int) -> Locator:
    return book.cell(number).locator(".hk-lab-fix")


def side(page: Page) -> Locator:
    return page.locator("#healkit-side-panel")


def tab(page: Page, name: str) -> Locator:
    return side(page).get_by_role("tab", name=re.compile(f"^{name}"))


def row(page: Page, text: str) -> Locator:
    return side(page).locator(".hk-side-row").filter(has_text=text)


def open_side(page: Page) -> None:
    """Open the side panel, and wait until it has answers."""
    page.evaluate("() => jupyterapp.commands.execute('healkit:open-panel').then(() => null)")
    expect(side(page).locator(".hk-side-foot")).to_contain_text("isolation", timeout=SLOW_MS)


def text(book: Notebook, number: int) -> str:
    found: str = book.page.evaluate(
        """([path, number]) => {
          const shown = [...jupyterapp.shell.widgets("main")].find(({ context }) => context?.path === path);
          return shown.content.model.cells.get(number).sharedModel.getSource();
        }""",
        [book.path.name, number],
    )
    return found


def of_extension(book: Notebook) -> list[str]:
    """List the page's errors that come from the extension; Notebook 7 has two of its own, with and without it."""
    return [problem for problem in book.problems if "extensions/healkit/" in problem]
