"""Panels in Notebook 7 and in JupyterLab's sidebar."""

from __future__ import annotations

import pytest
from browser_lab import CONTRAST, NO_EXTENSION, NOTEBOOK_7, SLOW_MS, WHOLE_LAB
from browser_panels import CONTRAST_LEAST, Open, failing, fix, open_editor, outcome, press
from playwright.sync_api import expect

#: Notebook 7.6 has a fault of its own as it starts: its settings editor asks for a schema that there is not.
NOT_OURS = "/static/notebook/notebook_core."

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.requirement("FACE-4")
def test_in_notebook_7_a_failure_is_fixed_tried_accepted_and_rerun(
    notebook: Open,
) -> None:
    book, panel = failing(notebook, "mean_of_seven", view=NOTEBOOK_7)
    assert book.page.evaluate(
        "() => JSON.parse(document.querySelector('#jupyter-config-data').text).appName"
    ) == ("Jupyter Notebook")
    outputs = book.cell(2).locator(".jp-OutputArea-child")
    expect(outputs.nth(0)).to_contain_text("ZeroDivisionError")
    expect(panel).to_contain_text("✗ mean_of_seven v1 ZeroDivisionError: division by zero")
    cells = book.cells()
    editor = open_editor(panel)
    fix(book, editor)
    book.page.keyboard.type(
        "  # dd aa bb xx 00 ii"
    )  # in command mode: delete, insert, cut, restart, interrupt
    press(panel, "▶ Try")
    expect(outcome(panel, "true")).to_contain_text("5.0")
    book.shot("12-notebook-7")
    press(panel, "✓ Accept")
    expect(panel.locator(".hk-said")).to_contain_text("✓ mean_of_seven v2 is active.")
    panel.get_by_role("button", name="↻ Re-run").last.click()
    expect(panel.locator(".hk-outcome")).to_contain_text("mean_of_seven v2", timeout=SLOW_MS)
    outcome(panel, "true")
    assert book.cells() == cells
    assert panel.evaluate(CONTRAST)["ratio"] >= CONTRAST_LEAST
    assert [problem for problem in book.problems if NOT_OURS not in problem] == []


@pytest.mark.requirement("FACE-4")
def test_the_log_stays_beside_the_notebook_when_it_is_docked(notebook: Open) -> None:
    tool = "halve_docked"
    fill = f"""
from healkit import Healkit
hk = Healkit()
hk.vault.add("{tool}", "def {tool}(n: int):\\n    return 10 // n")
for n in [1, 0]:
    hk.execute("{tool}", arguments={{"n": n}}, mode="subprocess")
"""
    again = f"hk.browse(dock=True, tool='{tool}', status='FAILURE')"
    cells = (fill, "%load_ext healkit", f"%executions --dock --tool {tool}", again, "%unload_ext healkit")
    book = notebook("docked", *cells, view=WHOLE_LAB)
    for number in range(3):
        book.run(number)
    expect(book.cell(2).locator(".hk")).to_contain_text("Executions: open on the right side of the window")
    panel = book.page.locator("#jp-right-stack .hk")
    panel.wait_for(timeout=SLOW_MS)
    rows = panel.locator(".hk-rows tbody tr")
    expect(rows).to_have_count(2)
    press(panel, f"{tool} v1")
    expect(panel.locator(".hk-detail")).to_contain_text("return 10 // n")
    assert panel.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth + 1")
    assert panel.evaluate(CONTRAST)["ratio"] >= CONTRAST_LEAST
    book.shot("13-docked")
    book.run(3)  # in the place of the first
    expect(rows).to_have_count(1, timeout=SLOW_MS)
    expect(panel).to_have_count(1)
    expect(book.cell(2).locator(".hk")).to_contain_text("Executions: closed.")
    press(panel, "close this panel")
    expect(panel).to_have_count(0)
    place = book.cell(3).locator(".hk")
    expect(place).to_contain_text("Executions: closed.")
    press(place, "Open it again")
    expect(rows).to_have_count(1, timeout=SLOW_MS)
    book.save()
    book.page.reload()
    book.ready()
    expect(rows).to_have_count(1, timeout=SLOW_MS)
    expect(panel).to_be_hidden()  # it waits as a tab
    press(place, "Show it")
    expect(panel).to_be_visible()
    book.run(4)
    expect(panel).to_have_count(0, timeout=SLOW_MS)
    assert [problem for problem in book.problems if NOT_OURS not in problem] == []


@pytest.mark.requirement("FACE-4")
def test_without_the_extension_a_docked_panel_stays_in_its_cell(notebook: Open) -> None:
    book = notebook("undocked", "%load_ext healkit", "%executions --dock", view=WHOLE_LAB)
    book.page.evaluate(NO_EXTENSION)
    for number in range(2):
        book.run(number)
    expect(book.panel(1).get_by_role("search")).to_be_visible(timeout=SLOW_MS)
    expect(book.page.locator("#jp-right-stack .hk")).to_have_count(0)
