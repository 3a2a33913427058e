"""Actions of a person below a failing cell, as tests do them."""

from __future__ import annotations

from collections.abc import Callable

from browser_lab import SLOW_MS, Notebook
from playwright.sync_api import Locator, expect

LOAD = "%load_ext healkit"
#: WCAG 2.2, 1.4.3, for text of normal size.
CONTRAST_LEAST = 4.5

Open = Callable[..., Notebook]


def broken(name: str) -> str:
    return f"%%tool {name}\ndef {name}(values: list):\n    total = sum(values)\n    return total / 0"


def failing(notebook: Open, name: str, *more: str, **window: int) -> tuple[Notebook, Locator]:
    """Open a notebook and run its first three cells, the last of which fails; return it and the panel below it."""
    book = notebook(name, LOAD, broken(name), f"%run_tool {name} values=[2,4,9]", *more, **window)
    for number in range(3):
        book.run(number)
    return book, book.panel(2)


def press(panel: Locator, name: str) -> None:
    panel.get_by_role("button", name=name).first.click()


def open_editor(panel: Locator) -> Locator:
    press(panel, "✎ Edit")
    editor = panel.get_by_role("textbox", name="code", exact=True)
    editor.wait_for()
    return editor


def fix(book: Notebook, editor: Locator, text: str = "len(values)") -> None:
    """Replace the zero at the end of the failing line."""
    editor.get_by_text("return").click()
    book.page.keyboard.press("End")
    book.page.keyboard.press("Backspace")
    book.page.keyboard.type(text)


def outcome(panel: Locator, ok: str) -> Locator:
    found = panel.locator(".hk-outcome")
    expect(found).to_have_attribute("data-ok", ok, timeout=SLOW_MS)
    return found
