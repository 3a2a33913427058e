"""Failing cell of the user's own, fixed in a browser."""

from __future__ import annotations

import pytest
from browser_lab import (
    ACTIVATE,
    CONNECTED,
    CONTRAST,
    EXTENSION,
    LAB,
    NO_EXTENSION,
    NOTEBOOK_7,
    OPEN,
    SLOW_MS,
    Notebook,
)
from browser_panels import CONTRAST_LEAST, LOAD, Open, press
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ORDERS = 'import pandas as pd\norders = pd.DataFrame({"revenue": [1.5, 2.5], "region": ["a", "b"]})'
SUM = "orders.groupby('region')['revnue'].sum()"
FIXED = "orders.groupby('region')['revenue'].sum()"
#: A notebook's session with a kernel of its own.
SESSION = {"type": "notebook", "kernel": {"name": "python3"}}
#: Whether a cell's panel offers its fix to JupyterLab's extension, and what the extension's command asks of it.
OFFERED = (
    "(at) => Boolean(globalThis.__healkitFixes?.has(jupyterapp.shell.currentWidget.content.widgets[at].node))"
)
LOOK = "(at) => __healkitFixes.get(jupyterapp.shell.currentWidget.content.widgets[at].node).look()"
#: As the extension does where there is no panel: its outputs are the cell's, and the history stays as it is.
SHOW_FIX = """
([at, prompt]) => {
  const { content, sessionContext } = jupyterapp.shell.currentWidget;
  const code = `from healkit.faces.notebook.fixing import show_fix; show_fix(${prompt})`;
  const future = sessionContext.session.kernel.requestExecute({ code, store_history: false });
  future.onIOPub = ({ header, content: data }) => {
    if (header.msg_type === "display_data") content.model.cells.get(at).outputs.add({ output_type: "display_data", ...data });
  };
  return future.done.then(() => null);
}
"""
#: Whether the page's newest panel has been asked to look for a fix.
BEGUN = """
() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({
  code: "", silent: true, store_history: false,
  user_expressions: { it: "__import__('healkit.faces.notebook.widgets.panel', fromlist=['_open'])._open[-1]._about()['begun']" },
}).done.then(({ content }) => content.user_expressions.it.data["text/plain"] === "True")
"""
#: JupyterLab's setting for one list of undo steps for all cells.
TRACKER = "lab/api/settings/@jupyterlab/notebook-extension:tracker"
#: Height of a card until something in it is unfolded, in CSS pixels.
CARD_MAX_PX = 160


def failed(notebook: Open, name: str, *cells: str, view: str = LAB) -> tuple[Notebook, Locator]:
    """Open a notebook and run its cells, the last of which fails; return it and the panel below that."""
    book = notebook(name, LOAD, *cells, width=1280, view=view)
    for number in range(len(cells) + 1):
        book.run(number)
    return book, book.panel(len(cells))


def proposal(panel: Locator) -> Locator:
    """Press Fix, and wait for what is proposed."""
    press(panel, "✚ Fix")
    found = panel.get_by_role("group", name="proposal")
    found.wait_for(timeout=SLOW_MS)
    return found


def editor(book: Notebook, number: int) -> Locator:
    return book.cell(number).locator(".jp-InputArea-editor .cm-content")


def text(book: Notebook, number: int) -> str:
    found: str = book.page.evaluate(
        "(number) => jupyterapp.shell.currentWidget.content.model.cells.get(number).sharedModel.getSource()",
        number,
    )
    return found


@pytest.mark.requirement("FACE-10", "FACE-12")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_a_failing_cell_is_fixed_and_run_where_it_stands_in_two_clicks(notebook: Open, view: str) -> None:
    book, panel = failed(notebook, f"fixed_{len(view)}", ORDERS, SUM, view=view)
    cell = book.cell(2)
    expect(panel).to_contain_text(
        "has no column 'revnue'. The most similar one is 'revenue'.", timeout=SLOW_MS
    )
    error, card = (cell.locator(".jp-OutputArea-child").nth(place) for place in (0, 1))
    expect(error.get_by_text("library frame")).to_be_visible()
    expect(error.get_by_text("site-packages").first).to_be_hidden()
    expect(card).to_be_hidden()
    assert panel.bounding_box()["height"] <= CARD_MAX_PX  # type: ignore[index]  # it is drawn
    book.shot(f"31-cell-card-{len(view)}")
    shown = proposal(panel)
    expect(shown.locator(".cm-merge-a")).to_contain_text(SUM)
    expect(shown.locator(".cm-merge-b")).to_contain_text(FIXED)
    assert text(book, 2) == SUM
    apply = shown.get_by_role("button", name="✓ Apply and run")
    expect(apply).to_be_focused()
    book.shot(f"32-cell-proposal-{len(view)}")
    apply.click()
    expect(book.cell(2)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    expect(panel).to_have_count(0)
    book.shot(f"33-cell-fixed-{len(view)}")
    assert "".join(book.save()["cells"][2]["source"]) == FIXED
    editor(book, 2).click()
    book.page.keyboard.press("Control+z")
    assert text(book, 2) == SUM
    book.page.keyboard.press("Control+Shift+z")
    assert text(book, 2) == FIXED


BY = "def by(frame):\n    return frame.groupby('region')['revnue'].sum()"
COPY = "def by_too(frame):\n    print('too')\n    return frame.groupby('region')['revnue'].sum()"


@pytest.mark.requirement("FACE-10")
def test_the_cell_that_defines_the_function_is_edited_with_a_chosen_copy_and_both_are_run(
    notebook: Open,
) -> None:
    book, panel = failed(notebook, "defined", ORDERS, BY, COPY, "by(orders)")
    shown = proposal(panel)
    expect(shown).to_contain_text("A fix for In [3]")
    expect(shown).to_contain_text("runs In [3], then In [5]")
    expect(shown).to_contain_text("also in In [4]")
    box = shown.get_by_role("checkbox")
    expect(box).not_to_be_checked()
    box.check()
    book.shot("34-cell-copy", panel)
    book.page.evaluate(
        """() => {
          globalThis.transactions = [];
          const { ydoc } = jupyterapp.shell.currentWidget.content.model.sharedModel;
          ydoc.on("afterTransaction", ({ changed }) => {
            const texts = [...changed.keys()].filter((type) => type.constructor.name && typeof type.toDelta === "function");
            if (texts.length) transactions.push(texts.length);
          });
        }"""
    )
    press(shown, "✓ Apply and run")
    expect(book.cell(4)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    for number in (2, 3):
        assert "revenue" in text(book, number)
    expect(book.cell(2).locator(".jp-InputPrompt")).to_have_text("[6]:")
    expect(book.cell(3).locator(".jp-InputPrompt")).to_have_text("[4]:")
    assert book.page.evaluate("() => transactions") == [2]
    editor(book, 3).click()
    book.page.keyboard.press("Control+z")
    assert text(book, 3) == COPY
    assert "revenue" in text(book, 2)
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_a_cell_that_was_changed_locked_or_deleted_meanwhile_is_left_as_it_is(notebook: Open) -> None:
    book, panel = failed(notebook, "left", ORDERS, BY, "by(orders)")
    shown = proposal(panel)
    editor(book, 2).click()
    book.page.keyboard.press("Control+End")
    book.page.keyboard.type("  # mine")
    mine = text(book, 2)
    press(shown, "✓ Apply and run")
    alert = panel.get_by_role("alert")
    expect(alert).to_contain_text(
        "In [3] was changed in the meantime, so no cell was edited.", timeout=SLOW_MS
    )
    book.shot("35-cell-changed", panel)
    assert text(book, 2) == mine
    for _ in "  # mine":
        editor(book, 2).press("Backspace")
    locked = "(is) => jupyterapp.shell.currentWidget.content.model.cells.get(2).setMetadata('editable', is)"
    book.page.evaluate(locked, False)
    press(shown, "✓ Apply and run")
    expect(alert).to_contain_text("In [3] is read-only, so no cell was changed.")
    book.page.evaluate(locked, True)
    book.page.evaluate("() => jupyterapp.shell.currentWidget.content.model.sharedModel.deleteCell(2)")
    panel = book.panel(2)
    press(panel, "✓ Apply and run")
    expect(panel.get_by_role("alert")).to_contain_text(
        "No cell of this notebook has the text of In [3] any more"
    )
    assert text(book, 2) == "by(orders)"
    expect(book.cell(2).locator(".jp-InputPrompt")).to_have_text("[4]:")
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_a_failing_cell_that_was_changed_is_not_run_and_a_definition_that_fails_ends_it(
    notebook: Open,
) -> None:
    book, panel = failed(notebook, "ends", ORDERS, BY, "by(orders)")
    shown = proposal(panel)
    editor(book, 3).click()
    book.page.keyboard.press("Control+End")
    book.page.keyboard.type(".max()")
    press(shown, "✓ Apply and run")
    expect(panel).to_contain_text("In [4] was changed since it failed", timeout=SLOW_MS)
    expect(book.cell(2).locator(".jp-InputPrompt")).to_have_text("[5]:")
    expect(book.cell(3).locator(".jp-InputPrompt")).to_have_text("[4]:")
    expect(shown.get_by_role("button", name="▶ Run")).to_be_enabled()  # the edit is made: no second one
    for _ in ".max()":
        editor(book, 3).press("Backspace")
    press(shown, "▶ Run")
    expect(book.cell(3)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_without_the_extension_the_fix_is_applied_and_the_panel_says_what_to_run(
    notebook: Open, view: str
) -> None:
    book, panel = failed(notebook, f"by_hand_{len(view)}", ORDERS, SUM, view=view)
    book.page.evaluate(NO_EXTENSION)
    shown = proposal(panel)
    expect(shown).to_contain_text("then run In [3]")
    press(shown, "✓ Apply")
    expect(shown).to_contain_text("✓ The fixed text is in In [3]: run In [3].")
    assert text(book, 2) == FIXED
    book.shot(f"36-by-hand-{len(view)}", panel)
    book.run(2)
    expect(book.cell(2)).to_contain_text("Name: revenue")
    book.page.evaluate(EXTENSION)


@pytest.mark.requirement("FACE-10")
def test_a_reload_in_the_middle_shows_the_proposal_again_and_runs_what_was_applied(notebook: Open) -> None:
    book, panel = failed(notebook, "reloaded", ORDERS, SUM)
    proposal(panel)
    book.save()
    book.page.reload()
    book.ready()
    shown = book.panel(2).get_by_role("group", name="proposal")
    expect(shown.locator(".cm-merge-b")).to_contain_text(FIXED, timeout=SLOW_MS)
    book.page.evaluate(NO_EXTENSION)
    press(book.panel(2), "✚ Fix")
    press(shown, "✓ Apply")
    expect(shown).to_contain_text("✓ The fixed text is in In [3]")
    book.save()
    book.page.reload()
    book.ready()
    press(shown, "▶ Run")  # it was applied, and is run with the extension
    expect(book.cell(2)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_a_kernel_that_is_restarted_in_the_middle_edits_and_runs_nothing(notebook: Open) -> None:
    book, panel = failed(notebook, "restarted", ORDERS, SUM)
    shown = proposal(panel)
    assert book.page.evaluate(OFFERED, 2)
    book.page.evaluate("() => { jupyterapp.commands.execute('notebook:restart-kernel'); }")
    expect(panel).to_contain_text(
        "The kernel was restarted. Run the cells above, then this one.", timeout=SLOW_MS
    )
    expect(shown.get_by_role("button", name="✓ Apply and run")).to_be_disabled()
    assert not book.page.evaluate(OFFERED, 2)
    book.shot("37-restarted", panel)
    book.ready()
    assert text(book, 2) == SUM
    for number in range(3):
        book.run(number)
    press(proposal(book.panel(2)), "✓ Apply and run")
    expect(book.cell(2)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_of_two_open_notebooks_with_the_same_cells_only_the_one_is_edited(notebook: Open) -> None:
    first, one = failed(notebook, "first", ORDERS, SUM)
    shown = proposal(one)
    path = first.path.with_name("second.ipynb")
    path.write_text(first.path.read_text())
    first.lab.api("POST", "api/sessions", SESSION | {"path": path.name, "name": path.name})
    first.page.evaluate(OPEN, path.name)
    second = Notebook(first.lab, first.page, path)
    here = first.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)").filter(has_text="%load_ext")
    expect(here.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')).to_be_attached(
        timeout=SLOW_MS
    )
    first.page.evaluate(ACTIVATE, path.name)
    first.page.wait_for_function(CONNECTED)
    for number in range(3):
        run = here.locator(".jp-Notebook .jp-Cell").nth(number)
        run.locator(".jp-InputArea-editor .cm-content").click()
        second.page.keyboard.press("Control+Enter")
        expect(run.locator(".jp-InputPrompt")).to_have_text(f"[{number + 1}]:", timeout=SLOW_MS)
    press(proposal(here.locator(".hk").first), "✓ Apply and run")
    expect(run).to_contain_text("Name: revenue", timeout=SLOW_MS)
    assert text(second, 2) == FIXED
    first.page.evaluate(ACTIVATE, first.path.name)
    expect(shown).to_be_visible()
    assert text(first, 2) == SUM
    press(shown, "✓ Apply and run")
    expect(first.cell(2)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    second.let_go()
    assert first.problems == second.problems == []


@pytest.mark.requirement("FACE-10")
def test_nothing_is_proposed_where_there_is_no_fix_and_the_search_can_be_repeated(notebook: Open) -> None:
    book, panel = failed(notebook, "none", "1 / 0")
    for _ in range(2):
        press(panel, "✚ Fix")
        expect(panel).to_contain_text("no fix found", timeout=SLOW_MS)
        expect(panel.get_by_role("button", name="✚ Fix")).to_be_enabled()
    expect(panel.get_by_role("button", name="Apply")).to_have_count(0)
    assert text(book, 1) == "1 / 0"
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_a_cell_that_failed_before_healkit_was_loaded_gets_its_card_and_its_fix(notebook: Open) -> None:
    book = notebook("late", ORDERS, SUM)
    for number in range(2):
        book.run(number)
    assert not book.page.evaluate(OFFERED, 1)
    book.page.evaluate(SHOW_FIX, [1, 2])
    expect(book.panel(1).get_by_role("button", name="✚ Fix")).to_be_visible(timeout=SLOW_MS)
    book.page.wait_for_function(OFFERED, arg=1)
    book.page.evaluate(LOOK, 1)
    press(book.panel(1), "✓ Apply and run")
    expect(book.cell(1)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    book.page.evaluate(SHOW_FIX, [1, 7])
    expect(book.cell(1)).to_contain_text(
        "The kernel was restarted. Run the cells above, then this one.", timeout=SLOW_MS
    )
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_a_reload_while_a_fix_is_looked_for_shows_what_is_found(notebook: Open) -> None:
    slow = "import time\ntime.sleep(2)\n" + SUM
    book, panel = failed(notebook, "searched", ORDERS, slow)
    book.save()
    press(panel, "✚ Fix")
    book.page.wait_for_function(BEGUN)
    book.page.reload()
    book.ready()
    shown = book.panel(2).get_by_role("group", name="proposal")
    expect(shown.locator(".cm-merge-b")).to_contain_text(FIXED, timeout=SLOW_MS)
    press(shown, "✓ Apply and run")
    expect(book.cell(2)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_a_restart_while_the_definition_runs_ends_it_there_and_what_was_applied_stays(notebook: Open) -> None:
    definition = "import time\ntime.sleep(5 * ('again' in globals()))\nagain = True\n" + BY
    book, panel = failed(notebook, "cut_short", ORDERS, definition, "by(orders)")
    press(proposal(panel), "✓ Apply and run")
    expect(book.cell(2).locator(".jp-InputPrompt")).to_have_text("[*]:", timeout=SLOW_MS)
    book.page.evaluate("() => { jupyterapp.commands.execute('notebook:restart-kernel'); }")
    expect(panel).to_contain_text(
        "The kernel was restarted. Run the cells above, then this one.", timeout=SLOW_MS
    )
    book.shot("42-cut-short", panel)
    expect(panel.get_by_role("button", name="▶ Run", exact=True)).to_be_disabled(timeout=SLOW_MS)
    assert "revenue" in text(book, 2)
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_with_undo_of_the_whole_document_one_step_takes_all_cells_back(notebook: Open) -> None:
    book = notebook("whole_undo", LOAD, ORDERS, BY, COPY, "by(orders)")
    book.lab.api("PUT", TRACKER, {"raw": '{"documentWideUndoRedo": true}'})
    try:
        book.page.reload()
        book.ready()
        for number in range(5):
            book.run(number)
        shown = proposal(book.panel(4))
        shown.get_by_role("checkbox").check()
        press(shown, "✓ Apply and run")
        expect(book.cell(4)).to_contain_text("Name: revenue", timeout=SLOW_MS)
        editor(book, 2).click()
        book.page.keyboard.press("Control+z")
        assert (text(book, 2), text(book, 3)) == (BY, COPY)
        book.page.keyboard.press("Control+Shift+z")
        assert "revenue" in text(book, 3)
    finally:
        book.lab.api("PUT", TRACKER, {"raw": "{}"})
        book.page.reload()
        book.ready()
    assert book.problems == []


@pytest.mark.requirement("FACE-10")
def test_a_proposal_has_no_serious_fault_of_accessibility_in_light_and_dark(notebook: Open, axe: str) -> None:
    book, panel = failed(notebook, "axe", ORDERS, BY, COPY, "by(orders)")
    proposal(panel)
    book.page.evaluate(axe)
    for theme, mark in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        book.choose_theme(theme)
        expect(panel).to_have_attribute("data-theme", mark, timeout=SLOW_MS)
        found = panel.evaluate("(panel) => axe.run(panel, { resultTypes: ['violations'] })")
        faults = [one["id"] for one in found["violations"] if one["impact"] in ("serious", "critical")]
        assert faults == [], found["violations"]
        worst = panel.evaluate(CONTRAST)
        assert worst["ratio"] >= CONTRAST_LEAST, (theme, worst)
        book.shot(f"43-proposal-{mark}", panel)
