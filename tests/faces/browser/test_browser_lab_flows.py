"""Fix in JupyterLab, interrupted in the middle of each flow.

The page is loaded anew, the kernel goes, or two notebooks are open.
"""

from __future__ import annotations

import pytest
from browser_extension import ORDERS, READY, SUM, TYPO, fix_button, of_extension, text
from browser_lab import ACTIVATE, LAB, NOTEBOOK_7, SLOW_MS, TELL, WHOLE_LAB, Notebook
from browser_panels import LOAD, Open, press
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FIXED = SUM.replace("revnue", "revenue")
SLOW_SUM = f"import time\ntime.sleep(2)\n{SUM}"
#: Whether the newest panel of the page's notebook has been asked to look for a fix.
BEGUN = """
() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({
  code: "", silent: true, store_history: false,
  user_expressions: { it: "__import__('healkit.faces.notebook.widgets.panel', fromlist=['_open'])._open[-1]._about()['begun']" },
}).done.then(({ content }) => content.user_expressions.it.data["text/plain"] === "True")
"""
#: Press the button in the first frame that has it.
PRESS_AT_ONCE = """
() => {
  const press = () => {
    const button = document.querySelector(".hk-lab-fix");
    if (button) button.click();
    else requestAnimationFrame(press);
  };
  press();
}
"""
RESTART = "() => { jupyterapp.commands.execute('notebook:restart-kernel'); }"
SHUT_DOWN = "() => jupyterapp.shell.currentWidget.sessionContext.shutdown()"


def failed(notebook: Open, name: str, cell: str = SUM, view: str = LAB) -> Notebook:
    """Open a notebook whose third cell has failed, and wait for its panel."""
    book = notebook(name, LOAD, ORDERS, cell, view=view)
    for number in range(3):
        book.run(number)
    book.panel(2)
    return book


def proposal(book: Notebook) -> Locator:
    """Press the extension's button, and wait for what is proposed."""
    fix_button(book, 2).click()
    return shown(book)


def shown(book: Notebook) -> Locator:
    found = book.cell(2).get_by_role("group", name="proposal")
    found.wait_for(timeout=SLOW_MS)
    return found


def reload(book: Notebook) -> None:
    book.page.reload()
    book.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=SLOW_MS)
    book.ready()


@pytest.mark.requirement("FACE-9", "FACE-12")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_a_press_before_the_panel_is_drawn_waits_for_that_and_shows_no_second_card(
    notebook: Open, view: str
) -> None:
    book = notebook(f"at_once_{len(view)}", LOAD, ORDERS, SUM, view=view)
    book.run(0)
    book.run(1)
    book.page.evaluate(PRESS_AT_ONCE)
    book.run(2)
    shown(book)
    expect(book.cell(2).locator(".hk")).to_have_count(1)
    expect(book.cell(2).locator(".hk-lab-card")).to_have_count(1)
    assert not of_extension(book)


def is_green(book: Notebook) -> None:
    """Wait until the cell has run with its fix, and neither button nor panel is left."""
    expect(book.cell(2)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    expect(fix_button(book, 2)).to_have_count(0)
    assert FIXED in text(book, 2)
    assert not of_extension(book)


@pytest.mark.requirement("FACE-9", "FACE-10")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_a_reload_while_the_button_looks_for_a_fix_or_shows_one_goes_on(notebook: Open, view: str) -> None:
    book = failed(notebook, f"loaded_{len(view)}", SLOW_SUM, view)
    book.save()
    fix_button(book, 2).click()
    book.page.wait_for_function(BEGUN)
    reload(book)
    shown(book)
    expect(fix_button(book, 2)).to_be_enabled()
    reload(book)
    press(shown(book), "✓ Apply and run")
    is_green(book)


@pytest.mark.requirement("FACE-9", "FACE-10")
def test_a_reload_while_a_tools_patch_waits_and_while_the_fixed_cell_runs(notebook: Open) -> None:
    tool = f"%%tool slow_total\n{TYPO}".replace("NAME", "slow_total")
    book = notebook(
        "tool_loaded", LOAD, tool, "import time\ntime.sleep(2)\n%run_tool slow_total values=[2,4]"
    )
    for number in range(3):
        book.run(number)
    book.panel(2)
    book.save()
    fix_button(book, 2).click()
    keep = book.cell(2).get_by_role("button", name="✓ Keep and run")
    keep.wait_for(timeout=SLOW_MS)
    reload(book)
    keep.click()
    expect(book.cell(2).locator(".jp-InputPrompt")).to_have_text("[*]:", timeout=SLOW_MS)
    book.save()
    reload(book)
    assert "return total" in text(book, 1)
    book.run(2)
    expect(book.cell(2)).to_contain_text("6", timeout=SLOW_MS)
    expect(book.page.locator(".hk-lab-fix")).to_have_count(0)
    assert not of_extension(book)


@pytest.mark.requirement("FACE-9", "FACE-10")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_a_restart_with_a_proposal_open_leaves_the_cell_and_the_button_says_what_to_do(
    notebook: Open, view: str
) -> None:
    book = failed(notebook, f"again_{len(view)}", view=view)
    open_ = proposal(book)
    book.page.evaluate(RESTART)
    expect(open_.get_by_role("button", name="✓ Apply and run")).to_be_disabled(timeout=SLOW_MS)
    book.ready()
    fix_button(book, 2).click()
    aside = book.cell(2).locator(".hk-lab-aside")
    expect(aside).to_contain_text("Run the cells above, then this one.", timeout=SLOW_MS)
    expect(fix_button(book, 2)).to_be_enabled()
    fix_button(book, 2).click()
    book.page.evaluate(TELL, "pass")  # the kernel answers in turn
    expect(fix_button(book, 2)).to_be_enabled(timeout=SLOW_MS)
    expect(aside).to_have_count(1)
    book.shot(f"48-restarted-{len(view)}")
    assert text(book, 2) == SUM
    for number in range(3):
        book.run(number)
    book.panel(2)
    press(proposal(book), "✓ Apply and run")
    is_green(book)


@pytest.mark.requirement("FACE-9", "FACE-10")
@pytest.mark.parametrize("slow", [False, True], ids=["proposal-open", "while-looking"])
def test_a_kernel_that_is_shut_down_in_the_middle_runs_nothing_and_the_button_says_so(
    notebook: Open, slow: bool
) -> None:
    cell = SLOW_SUM if slow else SUM
    book = failed(notebook, f"shut_{slow}", cell)
    if slow:
        fix_button(book, 2).click()
        book.page.wait_for_function(BEGUN)
    else:
        proposal(book)
    book.page.evaluate(SHUT_DOWN)
    expect(book.cell(2)).to_contain_text(
        "The kernel was restarted. Run the cells above, then this one.", timeout=SLOW_MS
    )
    expect(
        book.cell(2)
        .locator(".hk")
        .get_by_role("button", name="Apply and run")
        .and_(book.page.locator(":enabled"))
    ).to_have_count(0)
    button = fix_button(book, 2)
    expect(button).to_be_enabled(timeout=SLOW_MS)
    button.click()
    told = book.page.get_by_text("The kernel has ended. Run the cells above, then this one.")
    expect(told.first).to_be_visible()
    expect(button).to_be_enabled()
    assert text(book, 2) == cell
    assert not of_extension(book)


@pytest.mark.requirement("FACE-9", "FACE-10")
def test_of_two_notebooks_side_by_side_each_fix_acts_on_its_own(notebook: Open) -> None:
    book = failed(notebook, "left", view=WHOLE_LAB)
    page = book.page
    page.set_viewport_size({"width": 1600, "height": 900})
    path = book.path.with_name("right.ipynb")
    path.write_text(book.path.read_text())
    session = {"type": "notebook", "kernel": {"name": "python3"}, "path": path.name, "name": path.name}
    book.lab.api("POST", "api/sessions", session)
    page.evaluate(
        """(path) => jupyterapp.commands.execute("docmanager:open", {
          path, factory: "Notebook", options: { mode: "split-right" },
        }).then(() => null)""",
        path.name,
    )
    page.wait_for_function(READY, arg=path.name, timeout=SLOW_MS)
    page.evaluate(ACTIVATE, path.name)
    page.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells'); }")
    panes = page.locator(".jp-NotebookPanel")
    expect(panes).to_have_count(2)
    cells = [panes.nth(at).locator(".jp-Notebook .jp-Cell").nth(2) for at in range(2)]
    puts = []
    for cell in cells:
        cell.locator(".hk").wait_for(timeout=SLOW_MS)
        cell.locator(".hk-lab-fix").click()
        puts.append(cell.get_by_role("button", name="✓ Apply and run"))
        puts[-1].wait_for(timeout=SLOW_MS)
    book.shot("49-two-notebooks")
    other = Notebook(book.lab, page, path)
    try:
        puts[1].click()
        expect(cells[1]).to_contain_text("Name: revenue", timeout=SLOW_MS)
        assert (text(book, 2), text(other, 2)) == (SUM, FIXED)
        expect(puts[0]).to_be_enabled()
        puts[0].click()
        expect(cells[0]).to_contain_text("Name: revenue", timeout=SLOW_MS)
        assert text(book, 2) == FIXED
        expect(page.locator(".hk-lab-fix")).to_have_count(0)
    finally:
        other.let_go()
    assert not of_extension(book)
