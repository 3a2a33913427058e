"""Endings of a heal panel: its cell, tab or kernel goes."""

from __future__ import annotations

import pytest
from browser_lab import CONTRAST, NOTEBOOK_7, SLOW_MS, WHOLE_LAB, Notebook
from browser_panels import CONTRAST_LEAST, Open
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: No example covers two numbers between the examples, so a search has a question.
FILL = """
from healkit import Healkit
hk = Healkit()
code = "def NAME(items: int) -> int:\\n    if items > 10:\\n        return 20\\n    return 0\\n"
examples = [{"arguments": {"items": 10}, "result": 20}, {"arguments": {"items": 3}, "result": 0}]
entry = hk.vault.add("NAME", code, examples=examples)
"""
PANEL = "panel = hk.heal_panel('NAME', advisors=['search'], budget_s=120)\npanel"
DOCKED = "panel = hk.heal_panel('NAME', advisors=['search'], budget_s=120, dock=True)\npanel"
#: Lets the next cell wait until the kernel has decided what a page's goodbye means.
LISTEN = """
import threading
left, heard = panel.operations["left"], threading.Event()
def leave():
    left()
    heard.set()
panel.operations["left"] = leave
"""
AFTER = """
came = heard.wait(60)
heard.clear()
names = [thread.name for thread in threading.enumerate()]
print("after a goodbye" if came else "no goodbye", "it goes on" if "healkit-heal" in names else "it has ended")
"""


def cells(name: str, *texts: str) -> list[str]:
    return [text.replace("NAME", name) for text in texts]


def asked(panel: Locator) -> Locator:
    """Start the healing, and wait for its question."""
    panel.get_by_role("button", name="✚ Heal").click()
    question = panel.get_by_role("group", name="question")
    expect(question).to_contain_text("What is the right result of", timeout=SLOW_MS)
    return question


def delete(book: Notebook, number: int) -> None:
    before = book.page.evaluate("() => jupyterapp.shell.currentWidget.content.model.cells.length")
    book.cell(number).locator(".jp-InputArea-prompt").click()
    book.page.keyboard.press("Escape")
    book.page.keyboard.press("d")
    book.page.keyboard.press("d")
    expect(book.page.locator(".jp-Notebook .jp-Cell")).to_have_count(before - 1)


def tabs(book: Notebook) -> Locator:
    return book.page.locator(".jp-SideBar.jp-mod-right .lm-TabBar-tabLabel", has_text="Healing of")


@pytest.mark.requirement("FACE-4", "HEAL-4")
def test_a_healing_ends_with_the_last_cell_that_shows_it_and_comes_back_with_it(notebook: Open) -> None:
    book = notebook("toll", *cells("toll", FILL, PANEL, LISTEN, AFTER))
    for number in range(3):
        book.run(number)
    asked(book.panel(1))
    book.run(1)  # once more: the old panel goes, and the healing is shown by the new one
    book.run(3)
    expect(book.cell(3)).to_contain_text("after a goodbye it goes on", timeout=SLOW_MS)
    book.run(2)
    book.save()
    second = Notebook(book.lab, book.page.context.new_page(), book.path)
    second.open()
    expect(second.panel(1).get_by_role("group", name="question")).to_be_visible(timeout=SLOW_MS)
    delete(second, 1)
    book.page.bring_to_front()
    book.run(3)
    expect(book.cell(3)).to_contain_text("after a goodbye it goes on", timeout=SLOW_MS)
    expect(book.panel(1).get_by_role("group", name="question")).to_be_visible()
    delete(book, 1)
    book.run(2)
    expect(book.cell(2)).to_contain_text("after a goodbye it has ended", timeout=SLOW_MS)
    book.page.evaluate("() => { jupyterapp.commands.execute('notebook:undo-cell-action'); }")
    report = book.panel(1).get_by_role("group", name="report")
    expect(report).to_contain_text("toll v1: stopped", timeout=SLOW_MS)
    assert book.problems == []


@pytest.mark.requirement("FACE-4", "HEAL-4")
@pytest.mark.parametrize("view", [WHOLE_LAB, NOTEBOOK_7], ids=["lab", "notebook-7"])
def test_a_docked_panel_is_one_tab_after_a_restart_and_its_healing_ends_with_it(
    notebook: Open, view: str
) -> None:
    name = f"rent_{view[:3]}"
    book = notebook(name, *cells(name, FILL, DOCKED, "hk.browse(dock=True)", LISTEN, AFTER), view=view)
    for number in range(3):
        book.run(number)
    shown = book.page.locator("#jp-right-stack .hk >> visible=true")
    expect(shown.get_by_role("search")).to_be_visible(timeout=SLOW_MS)  # the log is on top by now
    assert shown.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth + 1")
    assert shown.evaluate(CONTRAST)["ratio"] >= CONTRAST_LEAST
    book.page.locator('[data-command="notebook:restart-kernel"]').first.click()
    expect(shown).to_contain_text("The kernel was restarted", timeout=SLOW_MS)
    expect(shown.get_by_label("status")).to_be_disabled()
    book.shot(f"27-dead-dock-{view[:3]}")
    book.ready()
    book.run(0)
    book.run(1)
    healing = book.page.locator("#jp-right-stack .hk-heal")
    expect(healing).to_have_count(1, timeout=SLOW_MS)
    if view == WHOLE_LAB:
        expect(tabs(book)).to_have_count(1)
    expect(healing).to_be_visible()
    expect(shown).to_have_count(1)
    book.run(3)
    asked(shown)
    shown.get_by_role("button", name="close this panel").click()
    expect(healing).to_have_count(0, timeout=SLOW_MS)
    book.run(4)
    expect(book.cell(4)).to_contain_text("after a goodbye it has ended", timeout=SLOW_MS)
    expect(book.cell(1)).to_contain_text(f"{name} v1: stopped")
    assert [problem for problem in book.problems if "/static/notebook/notebook_core." not in problem] == []
