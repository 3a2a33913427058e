"""Failing tool, fixed in its cell in a browser."""

from __future__ import annotations

import pytest
from browser_lab import EXTENSION, LAB, NO_EXTENSION, NOTEBOOK_7, SLOW_MS, Notebook
from browser_panels import LOAD, Open, fix, open_editor, press
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BROKEN = "def NAME(values: list):\n    total = sum(values)\n    return totl"


def failed(notebook: Open, name: str, *more: str, view: str = LAB) -> tuple[Notebook, Locator]:
    """Open a notebook whose tool has failed; return it and the panel below the failing cell."""
    code = BROKEN.replace("NAME", name)
    book = notebook(
        name, LOAD, f"%%tool {name}\n{code}", f"%run_tool {name} values=[2,4,9]", *more, view=view
    )
    for number in range(3):
        book.run(number)
    return book, book.panel(2)


def text(book: Notebook, number: int) -> str:
    found: str = book.page.evaluate(
        "(number) => jupyterapp.shell.currentWidget.content.model.cells.get(number).sharedModel.getSource()",
        number,
    )
    return found


def is_green(book: Notebook) -> None:
    """Wait until the failing cell has run with its value, and nothing of the failure is left."""
    expect(book.cell(2).locator(".jp-OutputArea-executeResult")).to_contain_text("15", timeout=SLOW_MS)
    expect(book.cell(2).locator(".hk")).to_have_count(0)


def consent(panel: Locator) -> Locator:
    press(panel, "✚ Fix")
    found = panel.get_by_role("group", name="consent")
    expect(found).to_contain_text("Its new code also goes into", timeout=SLOW_MS)
    return found


@pytest.mark.requirement("FACE-10")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_a_tool_is_fixed_in_its_cell_and_its_failing_cell_runs_in_two_clicks(
    notebook: Open, view: str
) -> None:
    name = f"total_{len(view)}"
    book, panel = failed(notebook, name, f"%%tool {name}\n{BROKEN}".replace("NAME", name), view=view)
    asked = consent(panel)
    expect(asked.get_by_role("checkbox")).to_have_count(2)
    expect(asked.get_by_role("checkbox").first).to_be_checked()
    book.shot(f"38-tool-consent-{len(view)}", panel)
    old = text(book, 1)
    press(asked, "✓ Keep and run")
    is_green(book)
    for number in (1, 3):
        assert text(book, number) == old.replace("totl", "total")
    book.shot(f"39-tool-fixed-{len(view)}")
    book.run(1)  # no fix is undone
    expect(book.cell(1)).to_contain_text("v2")
    book.cell(1).locator(".jp-InputArea-editor .cm-content").click()
    book.page.keyboard.press("Control+z")
    assert text(book, 1) == old


@pytest.mark.requirement("FACE-10")
def test_a_tools_cell_that_was_changed_meanwhile_is_left_and_one_that_was_not_chosen_too(
    notebook: Open,
) -> None:
    book, panel = failed(notebook, "left_tool")
    asked = consent(panel)
    book.cell(1).locator(".jp-InputArea-editor .cm-content").click()
    book.page.keyboard.press("Control+End")
    book.page.keyboard.type("  # mine")
    mine = text(book, 1)
    press(asked, "✓ Keep and run")
    expect(panel.get_by_role("alert")).to_contain_text("In [2] was changed in the meantime", timeout=SLOW_MS)
    assert text(book, 1) == mine
    book.shot("40-tool-left", panel)
    press(panel, "▶ Run the cell again")
    is_green(book)
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_without_the_extension_the_tools_cell_gets_the_patch_and_undo_takes_it_back(notebook: Open) -> None:
    book, panel = failed(notebook, "by_hand_tool")
    book.page.evaluate(NO_EXTENSION)
    asked = consent(panel)
    old = text(book, 1)
    press(asked, "✓ Keep")
    report = panel.get_by_role("group", name="report")
    expect(report).to_contain_text("by_hand_tool v2 is active", timeout=SLOW_MS)
    book.page.wait_for_function(
        "() => jupyterapp.shell.currentWidget.content.model.cells.get(1).sharedModel.getSource().includes('return total')"
    )
    press(report, "Undo")
    expect(report).to_contain_text("Undone: by_hand_tool v3 is active", timeout=SLOW_MS)
    assert text(book, 1) == old
    assert book.problems == []
    book.page.evaluate(EXTENSION)


@pytest.mark.requirement("FACE-10")
def test_what_is_accepted_in_the_editor_can_be_put_into_the_tools_cell(notebook: Open) -> None:
    book, panel = failed(notebook, "edited_tool")
    fix(book, open_editor(panel), "al")
    press(panel, "✓ Accept untried")
    press(panel, "Put it into In [2]")
    expect(panel.get_by_role("button", name="Put it into In [2]")).to_have_count(0)
    assert text(book, 1).endswith("return total")
    book.shot("41-tool-edited")
    press(panel, "▶ Run the cell again")
    is_green(book)
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_a_reload_while_a_patch_waits_keeps_the_question_and_its_cells(notebook: Open) -> None:
    book, panel = failed(notebook, "waiting_tool")
    consent(panel)
    book.save()
    book.page.reload()
    book.ready()
    asked = book.panel(2).get_by_role("group", name="consent")
    expect(asked).to_contain_text("Its new code also goes into", timeout=SLOW_MS)
    press(asked, "✓ Keep and run")
    is_green(book)
    assert "return total" in text(book, 1)
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_a_cell_that_defines_its_tool_and_runs_it_is_fixed_and_run_as_one(notebook: Open) -> None:
    code = BROKEN.replace("NAME", "at_once")
    book = notebook("at_once", LOAD, "'above'", f"%%tool at_once --run '{{\"values\": [2, 4, 9]}}'\n{code}")
    for number in range(3):
        book.run(number)
    press(consent(book.panel(2)), "✓ Keep and run")
    is_green(book)
    assert "return total" in text(book, 2)
    assert book.problems == []
