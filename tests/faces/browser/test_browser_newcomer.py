"""First flows of a newcomer in JupyterLab."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from browser_extension import ORDERS, SUM, fix_button, text
from browser_lab import ROOT, SLOW_MS, Lab, Notebook, SharedKernel
from browser_panels import LOAD, Open, press
from model_server import model_server, says
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LONG = (
    "summary = orders.assign(share=orders['revenue'] / orders['revenue'].sum(), double=orders['revnue'] * 2)"
    ".sort_values('region').groupby('region')[['revnue', 'share', 'double']].sum()\nsummary"
)
RESTART = "() => { jupyterapp.commands.execute('notebook:restart-kernel'); }"
#: What is seen of an error's text.
UNFOLDED = """(pre) => [...pre.childNodes].filter(({ localName }) => localName !== "details").map((one) => one.textContent).join("")"""
RESTARTED = "Run the cells above, then this one."
#: The model's answer to a cell that no rule fixes.
PAID = "from fractions import Fraction\nsum(Fraction(text) for text in ['1,5', '2'])"
MEANT = f"Commas.\n```python\n{PAID.replace('(text)', chr(40) + 'text.replace(chr(44), chr(46)))')}\n```"


def proposal(panel: Locator) -> Locator:
    press(panel, "✚ Fix")
    found = panel.get_by_role("group", name="proposal")
    found.wait_for(timeout=SLOW_MS)
    return found


def ran(notebook: Open, name: str, *cells: str) -> Notebook:
    book = notebook(name, *cells)
    for number in range(len(cells)):
        book.run(number)
    return book


@pytest.mark.requirement("FACE-10")
def test_both_sides_of_a_long_line_are_seen_whole(notebook: Open) -> None:
    book = ran(notebook, "wrapped", LOAD, ORDERS, LONG)
    shown = proposal(book.panel(2))
    for side in ("a", "b"):
        content = shown.locator(f".cm-merge-{side} .cm-scroller")
        assert content.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    expect(shown.locator(".cm-merge-b")).to_contain_text("'revenue', 'share'")
    book.shot("71-wrapped", shown)


@pytest.mark.requirement("FACE-12")
def test_frames_with_long_line_numbers_are_folded_and_so_they_are_without_a_panel(notebook: Open) -> None:
    book = ran(notebook, "folded", LOAD, ORDERS, "orders.groupby('regoin').sum()")
    book.panel(2)
    error = book.cell(2).locator(".jp-OutputArea-child").first.locator("pre")
    expect(error.get_by_text("library frames")).to_have_count(1, timeout=SLOW_MS)
    assert re.search(r"^-*> \d{5} ", error.evaluate("(pre) => pre.textContent"), re.MULTILINE)
    assert not re.search(r"^-*> \d{5} ", error.evaluate(UNFOLDED), re.MULTILINE)
    book.save()
    book.kill_kernel()
    book.page.reload()
    book.ready()
    expect(error.get_by_text("library frames")).to_have_count(1, timeout=SLOW_MS)
    expect(book.page.get_by_text("model not found")).to_be_hidden()
    book.shot("72-reopened")


@pytest.mark.requirement("FACE-9", "FACE-10")
def test_after_a_restart_the_answer_is_in_sight_and_its_button_runs_what_is_needed(notebook: Open) -> None:
    book = ran(notebook, "restarted", LOAD, ORDERS, "\n".join(f"print({n})" for n in range(60)) + f"\n{SUM}")
    panel = book.panel(2)
    book.page.evaluate(RESTART)
    expect(panel).to_contain_text(f"The kernel was restarted. {RESTARTED}", timeout=SLOW_MS)
    book.ready()
    fix_button(book, 2).click()
    aside = book.cell(2).locator(".hk-lab-aside")
    expect(aside).to_contain_text(f"The kernel was restarted. {RESTARTED}", timeout=SLOW_MS)
    expect(aside).to_be_in_viewport()
    book.shot("73-restarted")
    press(aside, "▶ Run them")
    expect(book.cell(2).locator(".jp-InputPrompt")).to_have_text("[3]:", timeout=SLOW_MS)
    expect(aside).to_have_count(0)
    assert "Apply and run" in proposal(book.panel(2)).inner_text()
    book.page.evaluate(RESTART)
    panel = book.panel(2)
    press(panel, "▶ Run them")  # the panel's own
    expect(panel).to_have_count(0, timeout=SLOW_MS)
    expect(book.panel(2).get_by_role("button", name="✚ Fix")).to_be_enabled(timeout=SLOW_MS)


@pytest.mark.requirement("FACE-7", "FACE-10")
def test_a_cell_that_stands_too_low_is_moved_up_and_run(notebook: Open, kernel: SharedKernel) -> None:
    kernel.end()  # a kernel knows its notebook by the path that it had as it started
    book = notebook("too_low", LOAD, "sum(prices)", "other = 1", "prices = [2, 5]")
    book.run(0)
    book.run(1)
    panel = book.panel(1)
    expect(panel).to_contain_text("prices is defined further down, in cell 4", timeout=SLOW_MS)
    book.shot("74-too-low", panel)
    press(panel, "⇡ Move cell 4 up and run")
    expect(book.cell(2).locator(".jp-OutputArea-executeResult")).to_contain_text("7", timeout=SLOW_MS)
    assert [text(book, number) for number in (1, 2, 3)] == ["prices = [2, 5]", "sum(prices)", "other = 1"]
    book.page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells').then(() => null)")
    expect(book.cell(3).locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[8\]:"), timeout=SLOW_MS)
    expect(book.page.locator(".jp-Notebook [data-mime-type='application/vnd.jupyter.error']")).to_have_count(
        0
    )


@pytest.mark.requirement("HEAL-5", "FACE-10")
def test_a_card_without_a_fix_asks_the_model_that_is_set_up(notebook: Open) -> None:
    with model_server() as server:
        server.plan.append(says(MEANT))
        settings = {"": "teacher-1", "_URL": f"{server.url}/v1"}
        told = "\n".join(
            f"os.environ['HEALKIT_HEAL_MODEL{name}'] = {value!r}" for name, value in settings.items()
        )
        book = ran(notebook, "asked", f"import os\n{told}\n{LOAD}", PAID)
        panel = book.panel(1)
        press(panel, "✚ Fix")
        expect(panel).to_contain_text("no fix found", timeout=SLOW_MS)
        assert server.requests == []
        book.shot("75-ask", panel)
        press(panel, "Ask teacher-1")
        shown = panel.get_by_role("group", name="proposal")
        expect(shown).to_contain_text("The model says: “Commas.”", timeout=SLOW_MS)
        press(shown, "✓ Apply and run")
        expect(book.cell(1)).to_contain_text("Fraction(7, 2)", timeout=SLOW_MS)
    for name in settings:
        book.page.evaluate(
            """(code) => jupyterapp.shell.currentWidget.sessionContext.session.kernel
              .requestExecute({ code, silent: true }).done.then(() => null)""",
            f"import os; os.environ.pop('HEALKIT_HEAL_MODEL{name}', None)",
        )


#: Count the questions for a fix that the page asks, each once.
COUNT = """
() => {
  globalThis.asked = new Set();
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (data) {
    const found = /"op":"heal","id":"([^"]+)"/.exec(new TextDecoder().decode(data));
    if (found) asked.add(found[1]);
    return send.call(this, data);
  };
}
"""


@pytest.mark.requirement("FACE-4")
@pytest.mark.parametrize("change", ["move", "replace", "leave"])
def test_a_press_counts_once_where_the_page_moves_or_replaces_the_button_meanwhile(
    notebook: Open, change: str
) -> None:
    """N17: Accept was pressed while the panel drew itself anew, and the press had no effect."""
    book = ran(notebook, f"pressed_{change}", LOAD, ORDERS, SUM)
    button = book.panel(2).get_by_role("button", name="✚ Fix")
    box = button.bounding_box()
    assert box is not None
    book.page.evaluate(COUNT)
    mouse = book.page.mouse
    mouse.move(box["x"] + 10, box["y"] + 10)
    mouse.down()
    changes = {
        "move": "(one) => { one.style.position = 'relative'; one.style.top = '90px'; }",
        "replace": "(one) => one.replaceWith(document.createElement('i'))",
        "leave": "() => null",
    }
    button.evaluate(changes[change])
    mouse.up()
    book.panel(2).get_by_role("group", name="proposal").wait_for(timeout=SLOW_MS)
    assert book.page.evaluate("() => asked.size") == 1


LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
RUN_ALL = "() => jupyterapp.commands.execute('notebook:run-all-cells').then(() => null)"
ALL_RAN = """
() => {
  const { content, sessionContext } = jupyterapp.shell.currentWidget;
  return content.widgets.every(({ model }) => model.executionCount !== null) && sessionContext.session.kernel.status === "idle";
}
"""
OUTPUTS = """
() => jupyterapp.shell.currentWidget.content.widgets.filter(({ model }) => model.type === "code").map(({ model }) => ({
  id: model.id, count: model.executionCount, text: JSON.stringify(model.outputs.toJSON()),
  failed: model.outputs.toJSON().some(({ output_type }) => output_type === "error"),
}))
"""


@pytest.mark.timeout(900)
@pytest.mark.requirement("FACE-3", "HEAL-6")
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_each_lesson_runs_in_jupyterlab_and_fails_where_it_means_to(
    lab: Lab, notebook: Open, kernel: SharedKernel, path: Path
) -> None:
    cells = nbformat.read(path, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    book = notebook(path.stem, *[cell.source for cell in code])
    shutil.copytree(path.parent / "data", lab.folder / "data", dirs_exist_ok=True)
    meant = [place for place, cell in enumerate(code) if "raises-exception" in cell.metadata.get("tags", [])]
    book.page.evaluate(
        """(meant) => meant.forEach((place) => jupyterapp.shell.currentWidget.content.model.cells.get(place).setMetadata("tags", ["raises-exception"]))""",
        meant,
    )
    book.page.evaluate(RUN_ALL)  # may return at the first failure, while cells still run
    book.page.wait_for_function(ALL_RAN, timeout=800_000)
    found = book.page.evaluate(OUTPUTS)
    assert [place for place, cell in enumerate(found) if cell["failed"]] == meant
    if path.stem.endswith("your_failing_notebook"):
        first = next(place for place, cell in enumerate(code) if cell.source == "%heal")
        assert "In [4]: is this what you mean, in In [3]?" in found[first]["text"]
        assert "order_date" in found[first]["text"]
        book.cell(first).scroll_into_view_if_needed()
        book.shot("76-lesson-02")
    assert book.problems == []
    kernel.end()  # what a lesson has set up goes with it


@pytest.mark.requirement("MEAN-1", "MEAN-5")
def test_readings_are_a_question_and_an_edit_that_loses_values_says_so(notebook: Open) -> None:
    merged = "both = orders.merge(orders, on='region')\nboth['revenue'].sum()"
    book = ran(notebook, "readings", LOAD, ORDERS, merged, "orders['region'].astype(int)")
    panel = book.panel(2)
    press(panel, "✚ Fix")
    question = panel.get_by_role("group", name="question")
    question.wait_for(timeout=SLOW_MS)
    expect(question.get_by_role("button", name="Show it")).to_have_count(2)
    expect(panel.get_by_role("button", name=re.compile("Apply"))).to_have_count(0)
    book.shot("75-question", question)
    press(question, "Show it")
    expect(panel.get_by_role("group", name="proposal")).to_contain_text("? If you mean this, for In [3]")
    expect(panel.get_by_role("button", name=re.compile("Apply"))).to_have_count(1)
    panel = book.panel(3)
    press(panel, "✚ Fix")
    expect(panel).to_contain_text("No safe fix found.", timeout=SLOW_MS)
    expect(panel.get_by_role("button", name=re.compile("Apply"))).to_have_count(0)
    panel.get_by_text("Not a fix: an edit that changes or hides data").click()
    expect(panel).to_contain_text("values become missing.")
    book.shot("76-not-a-fix", panel)
