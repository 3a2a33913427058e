"""Cell order panel in a real JupyterLab.

Nothing runs before the click, and then the cells do.
"""

from __future__ import annotations

import pytest
from browser_lab import CONTRAST, LAB, NOTEBOOK_7, SLOW_MS, TELL
from browser_panels import Open
from playwright.sync_api import expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.requirement("FACE-4", "FACE-7")
def test_a_click_runs_the_cells_that_the_failed_one_lacks_and_it_runs_then(notebook: Open) -> None:
    cells = ["%load_ext healkit", "base = 2\nprint('base is there')", "prices = [base, 5]", "sum(prices)"]
    book = notebook("order", *cells, width=900)
    book.run(0)
    book.run(3)
    panel = book.panel(3)
    expect(book.cell(3).locator(".jp-OutputArea-child").nth(0)).to_contain_text("NameError")
    expect(panel).to_contain_text("prices is defined in cell 3 (In [ ]: prices = [base, 5])", timeout=SLOW_MS)
    expect(panel.get_by_role("listitem")).to_have_count(2)
    expect(book.cell(1).locator(".jp-InputPrompt")).to_have_text("[ ]:")
    book.shot("cell-order", panel)
    panel.get_by_role("button", name="Run these 2 cells").focus()
    book.page.keyboard.press("Enter")
    said = panel.locator(".hk-said")
    expect(said).to_have_text("Done: In [3] and In [4]. Now run the cell above again.", timeout=SLOW_MS)
    expect(panel).to_contain_text("base is there")
    for theme, mark in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        book.choose_theme(theme)
        expect(panel).to_have_attribute("data-theme", mark, timeout=SLOW_MS)
        worst = panel.evaluate(CONTRAST)
        assert worst["ratio"] >= 4.5, (theme, worst)
        book.shot(f"cell-order-{mark}", panel)
    book.run(3)
    expect(book.cell(3).locator(".jp-InputPrompt")).to_have_text("[5]:")
    expect(book.cell(3).locator(".jp-OutputArea-output")).to_have_text("7")
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_with_the_extension_the_failed_cell_is_run_again_by_a_second_click(notebook: Open) -> None:
    book = notebook("order_again", "%load_ext healkit", "base = 2", "base + 1")
    book.run(0)
    book.run(2)
    panel = book.panel(2)
    panel.get_by_role("button", name="Run that cell").click()
    again = panel.get_by_role("button", name="▶ Run the cell above again")
    expect(again).to_be_focused(timeout=SLOW_MS)
    again.click()
    expect(book.cell(2).locator(".jp-OutputArea-executeResult")).to_contain_text("3", timeout=SLOW_MS)
    expect(panel).to_have_count(0)
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_a_fix_gets_into_the_cell_that_asked_for_it_and_runs_there(notebook: Open, view: str) -> None:
    broken = "def half(n: int):\n    return n / O"
    cells = ["%load_ext healkit", "units = [4, 9]", "sum(unit)", "%heal --apply", f"%%tool half\n{broken}"]
    book = notebook(f"apply-{view.partition('/')[0]}", *cells, width=900, view=view)
    for number in range(4):
        book.run(number)
    code = book.cell(3).locator(".cm-content")
    expect(code).to_have_text("sum(units)")
    book.shot(f"applied-{view.partition('/')[0]}")
    book.run(3)
    expect(book.cell(3).locator(".jp-OutputArea-output")).to_have_text("13")
    book.run(4)
    book.page.evaluate(
        TELL,
        f"from healkit import Healkit\nHealkit().vault.patch('half', {broken.replace('O', '2')!r}, author='rule')",
    )
    book.run(4)
    expect(book.cell(4)).to_contain_text("The vault has a healed half v2 that this cell does not have.")
    code = book.cell(4).locator(".cm-content")
    code.click()
    book.page.keyboard.press("Control+Home")
    book.page.keyboard.press("End")
    book.page.keyboard.type(" --take")
    book.run(4)
    expect(code).to_contain_text("return n / 2")
    expect(book.cell(4)).to_contain_text("The code of half v2 is in this cell now: run it")
    book.page.keyboard.press("Control+z")
    expect(code).to_contain_text("return n / O")
