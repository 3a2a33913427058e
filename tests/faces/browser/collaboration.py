"""Apply in a notebook that two pages edit together."""

from __future__ import annotations

import pytest
from browser_extension import ORDERS, fix_button, of_extension
from browser_lab import LAB, SLOW_MS, Notebook
from browser_panels import LOAD, Open, press
from playwright.sync_api import BrowserContext, Page, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


BY = "def by(frame):\n    return frame.groupby('region')['revnue'].sum()"
COPY = "def by_too(frame):\n    print('too')\n    return frame.groupby('region')['revnue'].sum()"
TEXTS = "() => [...jupyterapp.shell.currentWidget.content.model.cells].map((cell) => cell.sharedModel.getSource())"
#: Note for each transaction on the page's document how many cells' texts it has changed.
WATCH = """
() => {
  globalThis.transactions = [];
  jupyterapp.shell.currentWidget.content.model.sharedModel.ydoc.on("afterTransaction", ({ changed, local }) => {
    const texts = [...changed.keys()].filter((type) => type.constructor.name && typeof type.toDelta === "function");
    if (texts.length) transactions.push([local, texts.length]);
  });
}
"""


def seen(page: Page, *texts: str) -> None:
    """Wait until a page's third and fourth cells have these texts."""
    same = f"(texts) => ({TEXTS})().slice(2, 4).every((text, at) => text === texts[at])"
    page.wait_for_function(same, arg=list(texts))


@pytest.mark.requirement("FACE-10")
def test_an_apply_is_one_transaction_that_the_other_page_sees_and_undo_takes_back(
    notebook: Open, browser: BrowserContext
) -> None:
    book: Notebook = notebook("together", LOAD, ORDERS, BY, COPY, "by(orders)")
    page = book.page
    assert page.evaluate("() => jupyterapp.shell.currentWidget.content.model.collaborative")
    other = browser.new_page()
    other.set_default_timeout(SLOW_MS)
    other.goto(f"{book.lab.url}/{LAB}/{book.path.name}?token={book.lab.token}")
    other.locator(".jp-Notebook .jp-Cell").nth(4).wait_for()
    seen(other, BY, COPY)
    page.bring_to_front()
    for number in range(5):
        book.run(number)
    book.panel(4)
    for each in (page, other):
        each.evaluate(WATCH)
    fix_button(book, 4).click()
    shown = book.cell(4).get_by_role("group", name="proposal")
    shown.get_by_role("checkbox").check()
    press(shown, "✓ Apply and run")
    expect(book.cell(4)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    fixed = [text.replace("revnue", "revenue") for text in (BY, COPY)]
    seen(other, *fixed)
    assert page.evaluate("() => transactions") == [[True, 2]]
    assert other.evaluate("() => transactions") == [[False, 2]]
    other.bring_to_front()
    expect(other.locator(".jp-Notebook .jp-Cell").nth(4)).to_contain_text("Name: revenue")
    page.bring_to_front()
    book.cell(2).locator(".jp-InputArea-editor .cm-content").click()
    page.keyboard.press("Control+z")
    seen(page, BY, fixed[1])
    seen(other, BY, fixed[1])
    assert not of_extension(book)
