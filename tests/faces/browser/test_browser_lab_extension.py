"""JupyterLab's extension, in JupyterLab and in Notebook 7."""

from __future__ import annotations

import json

import nbformat
import pytest
from browser_lab import ACTIVATE, ASK, LAB, NOTEBOOK_7, SLOW_MS, WHOLE_LAB, Lab, Notebook
from browser_panels import LOAD, Open
from playwright.sync_api import BrowserContext, Locator, Page, expect

from healkit.faces.notebook.widgets.panel import bundle_hash

pytestmark = pytest.mark.timeout(300)

BROKEN = "total = 1 / 0"
#: What a notebook that nothing in this process has made may hold.
HOSTILE = '<img src=x onerror="window.hostile = 1"><script>window.hostile = 1</script>'
FAILURE = "application/vnd.healkit.failure+json"

#: Note the frames in which the error output and the button in it are first there, from outside of the extension.
WATCH = """
() => {
  window.seen = {};
  const look = () => {
    const now = performance.now();
    const type = '[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]';
    if (document.querySelector(`.jp-OutputArea-child :is(${type})`)) window.seen.error ??= now;
    if (document.querySelector(".hk-lab-fix")) window.seen.button ??= now;
    if (window.seen.button === undefined) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
"""
#: Register a fix in a cell, as a panel does, which counts how often it is looked at.
OFFER = """
(cell) => {
  window.looked = 0;
  const fix = { element: cell, look: async () => { window.looked += 1; } };
  globalThis.__healkitFixes = { get: (one) => (one === cell ? fix : undefined) }; // what panels write goes elsewhere
}
"""
ACTIVE = "() => jupyterapp.shell.currentWidget.content.activeCellIndex"


def fix_button(book: Notebook, number: int) -> Locator:
    return book.cell(number).get_by_role("button", name="Fix", exact=True)


def of_extension(book: Notebook) -> list[str]:
    """List the page's errors that come from the extension; Notebook 7 has one of its own, with and without it."""
    return [problem for problem in book.problems if "extensions/healkit/" in problem]


def write(book: Notebook, number: int, text: str) -> None:
    """Type at the end of a cell."""
    book.cell(number).locator(".jp-InputArea-editor").click()
    book.page.keyboard.press("Control+End")
    book.page.keyboard.type(text)


def configure(book: Notebook, lab: Lab, **settings: object) -> None:
    """Save settings as JupyterLab's editor does, and load the page with them."""
    path = "lab/api/settings/healkit:plugin"
    lab.api("PUT", path, {"raw": json.dumps(settings)})
    book.page.reload()
    book.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=SLOW_MS)
    book.ready()


@pytest.mark.requirement("FACE-9")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_an_error_has_a_fix_button_as_long_as_the_cell_holds_its_text(notebook: Open, view: str) -> None:
    book = notebook(f"button_{len(view)}", LOAD, BROKEN, view=view)
    book.run(0)
    book.page.evaluate(WATCH)
    book.run(1)
    button = fix_button(book, 1)
    expect(button).to_be_visible()
    card = book.cell(1).locator(".hk-lab-card")
    expect(card).to_be_attached(timeout=SLOW_MS)
    seen = book.page.evaluate("window.seen")
    assert seen["button"] == seen["error"]  # the times of the frames in which each was first there
    book.shot(f"40-button-{len(view)}")
    write(book, 1, " + 1")
    expect(button).to_be_hidden()
    for _ in " + 1":
        book.page.keyboard.press("Backspace")
    expect(button).to_be_visible()
    write(book, 1, " + 1")
    book.save()
    book.page.reload()
    book.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=SLOW_MS)
    book.ready()
    expect(book.cell(1).locator(".hk-lab-card")).to_be_attached(timeout=SLOW_MS)
    expect(button).to_have_count(0)  # known by the hash in the saved card
    assert not of_extension(book)


@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_the_button_shows_the_fix_of_the_panel_in_the_cell(notebook: Open, view: str) -> None:
    book = notebook(f"press_{len(view)}", LOAD, BROKEN, view=view)
    book.run(0)
    book.run(1)
    book.panel(1)  # its own fix is there by then
    book.cell(1).evaluate(OFFER)
    fix_button(book, 1).click()
    book.page.wait_for_function("window.looked === 1")
    book.cell(1).locator(".jp-InputPrompt").click()
    book.page.keyboard.press("Alt+Shift+F")
    book.page.wait_for_function("window.looked === 2")
    book.cell(1).locator('[data-jp-item-name="healkit-fix"]').locator("jp-button, button").first.click()
    book.page.wait_for_function("window.looked === 3")
    book.cell(1).locator(".jp-InputPrompt").click(button="right")
    book.page.get_by_role("menuitem", name="Fix the Failing Cell").click()
    book.page.wait_for_function("window.looked === 4")
    book.cell(0).locator(".jp-InputPrompt").click(button="right")
    expect(book.page.get_by_role("menuitem", name="Cut Cell")).to_be_visible()
    expect(book.page.get_by_role("menuitem", name="Fix the Failing Cell")).to_have_count(0)
    book.page.keyboard.press("Escape")
    expect(book.cell(0).locator('[data-jp-item-name="healkit-fix"]')).to_be_hidden()
    assert not of_extension(book)


def test_keys_go_from_one_failing_cell_to_the_next(notebook: Open) -> None:
    book = notebook("walk", BROKEN, "1", "[][1]", "2")
    for number in range(4):
        book.run(number)
    book.cell(3).locator(".jp-InputPrompt").click()
    for key, cell in (("F8", 0), ("F8", 2), ("F8", 0), ("Shift+F8", 2)):
        book.page.keyboard.press(key)
        book.page.wait_for_function(f"({ACTIVE})() === {cell}")


def test_without_healkit_in_the_kernel_the_button_is_there_and_nothing_is_run(notebook: Open) -> None:
    book = notebook("plain", BROKEN, "sys = __import__('sys')\n'healkit' in sys.modules")
    book.run(0)
    expect(fix_button(book, 0)).to_be_visible()
    book.run(1)
    before = book.page.evaluate(
        ASK, "len(__import__('IPython').get_ipython().history_manager.input_hist_raw)"
    )
    assert before == "3"  # an empty one, and the two cells
    write(book, 0, " + 1")
    expect(fix_button(book, 0)).to_be_hidden()


def test_an_interrupted_cell_has_no_fix_button(notebook: Open) -> None:
    book = notebook("interrupted", "raise KeyboardInterrupt", "raise SystemExit")
    book.run(0)
    expect(book.cell(0)).to_contain_text("KeyboardInterrupt")
    expect(book.page.locator(".hk-lab-fix")).to_have_count(0)


@pytest.mark.requirement("FACE-9")
def test_a_hostile_card_in_an_untrusted_notebook_is_text(lab: Lab, notebook: Open) -> None:
    book = notebook("hostile", "1", "2")
    card = {
        "card": HOSTILE,
        "line": HOSTILE,
        "tone": 'bad" onclick="x',
        "mark": HOSTILE,
        "parts": [
            {"line": {"span": f"`{HOSTILE}`", "look": "ticked", "tone": HOSTILE}, "look": HOSTILE},
            {"code": HOSTILE, "max_height_px": "1px;background:url(x)"},
            {"diff": f"-{HOSTILE}\n+{HOSTILE}"},
            {"facts": [[HOSTILE, {"fold": HOSTILE, "body": [HOSTILE]}]]},
            {"table": [[HOSTILE]], "headers": [HOSTILE]},
            {"items": [HOSTILE]},
        ],
    }
    outputs = [
        nbformat.v4.new_output("error", ename="E", evalue="", traceback=["E"]),
        nbformat.v4.new_output(
            "display_data",
            {FAILURE: {"version": 1, "source": "0", "fixable": True, "cards": [card]}, "text/plain": "x"},
        ),
        nbformat.v4.new_output(
            "display_data", {FAILURE: {"version": 2, "cards": 5}, "text/plain": "a later version"}
        ),
    ]
    saved = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("1", execution_count=1, outputs=outputs)],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(saved, lab.folder / "opened.ipynb")
    page = book.page
    page.evaluate(
        "(path) => jupyterapp.commands.execute('docmanager:open', { path, factory: 'Notebook' }).then(() => null)",
        "opened.ipynb",
    )
    card_shown = page.locator(".hk-lab-card")
    expect(card_shown).to_be_visible(timeout=SLOW_MS)
    expect(page.get_by_text("a later version")).to_be_visible()
    assert card_shown.locator("img, script, [onclick], [onerror]").count() == 0
    assert HOSTILE in (card_shown.text_content() or "")
    assert page.evaluate("window.hostile") is None
    assert page.locator(".hk-lab-fix").count() == 0  # the hash is not that of the cell's text
    page.evaluate(ACTIVATE, book.path.name)


@pytest.mark.requirement("FACE-9")
def test_a_saved_card_is_drawn_without_a_kernel(lab: Lab, browser: BrowserContext, notebook: Open) -> None:
    book = notebook("kept", LOAD, BROKEN)
    for number in range(2):
        book.run(number)
    data = next(output["data"] for output in book.save()["cells"][1]["outputs"] if "data" in output)
    assert set(data) == {"text/plain", "text/html", FAILURE}
    saved = nbformat.read(lab.folder / "kept.ipynb", as_version=4)
    saved.metadata = {"kernelspec": {"name": "gone", "display_name": "Gone", "language": "python"}}
    nbformat.write(saved, lab.folder / "cold.ipynb")
    page = browser.new_page()
    page.goto(f"{lab.url}/{LAB}/cold.ipynb?reset&token={lab.token}")
    card = page.locator(".hk-lab-card")
    expect(card).to_have_count(1, timeout=SLOW_MS)
    expect(card.get_by_role("heading", name="ZeroDivisionError: division by zero")).to_be_attached()


def test_panels_come_from_the_extension_and_not_through_the_kernel(notebook: Open) -> None:
    book = notebook("bundle", LOAD, BROKEN)
    assert book.page.evaluate("[...globalThis.__healkitPanels.keys()]") == [bundle_hash()]
    made: list[str] = []
    book.page.on(
        "request", lambda request: made.append(request.url) if request.url.startswith("blob:") else None
    )
    book.run(0)
    book.run(1)
    expect(book.panel(1)).to_contain_text("division by zero", timeout=SLOW_MS)
    expect(book.cell(1).locator(".hk-lab-card")).to_be_hidden()  # the panel shows the same
    assert len(made) == 1  # anywidget's own, for the few lines of the loader


@pytest.mark.parametrize("view", [WHOLE_LAB, NOTEBOOK_7])
def test_an_element_of_a_panel_is_docked_beside_the_notebook(notebook: Open, view: str) -> None:
    book = notebook(f"dock_{len(view)}", "1", view=view)
    page = book.page
    page.evaluate(
        """() => {
          window.ended = [];
          const dock = (text) => {
            const element = Object.assign(document.createElement("p"), { textContent: text });
            return globalThis.__healkitLab.dock("key", "A panel", element, () => window.ended.push(text));
          };
          dock("first of that key");
          window.second = dock("second of that key");
          window.second.front();
        }"""
    )
    expect(page.get_by_text("second of that key")).to_be_visible()
    expect(page.get_by_text("first of that key")).to_have_count(0)
    assert page.evaluate("window.ended") == []
    page.evaluate("window.second.close()")
    expect(page.get_by_text("second of that key")).to_have_count(0)
    assert not of_extension(book)


def test_a_cell_is_run_as_its_user_would(notebook: Open) -> None:
    book = notebook("run", "x = 41", "x + 1", BROKEN)
    run = """(at) => {
      const { content, context } = jupyterapp.shell.currentWidget;
      return globalThis.__healkitLab.run(context, content.widgets[at].model.id);
    }"""
    assert [book.page.evaluate(run, number) for number in range(3)] == [True, True, False]
    expect(book.cell(1).locator(".jp-OutputArea-output")).to_have_text("42")
    expect(book.cell(1).locator(".jp-InputPrompt")).to_have_text("[2]:")


@pytest.mark.requirement("FACE-9")
def test_settings_load_healkit_in_every_notebook(notebook: Open, lab: Lab) -> None:
    book = notebook("settings", BROKEN, view=WHOLE_LAB)
    try:
        configure(book, lab, everyNotebook=True, explain="hint", advisors=["rules"])
        book.run(0)
        expect(book.cell(0).locator(".hk-lab-card")).to_be_visible(timeout=SLOW_MS)
        assert book.page.evaluate(ASK, "__import__('os').environ['HEALKIT_HEAL_ADVISORS']") == "'rules'"
        expect(fix_button(book, 0)).to_be_hidden()  # no fixes up to a hint
        assert book.page.evaluate(ASK, "'load' in globals() or 'page_settings' in globals()") == "False"
        book.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
        book.ready()
        book.run(0)
        expect(book.cell(0).locator(".hk-lab-card")).to_be_visible(timeout=SLOW_MS)
        configure(book, lab, everyNotebook=True, cards=False)
        book.run(0)
        expect(book.cell(0).locator(".hk-lab-card")).to_have_count(0)
        expect(fix_button(book, 0)).to_be_visible()
        configure(book, lab, sidePanel="left")
        expect(book.page.locator('.jp-SideBar.jp-mod-left [data-id="healkit-side-panel"]')).to_be_visible()
    finally:
        lab.api("PUT", "lab/api/settings/healkit:plugin", {"raw": "{}"})


def test_the_settings_editor_has_a_page_for_healkit(notebook: Open) -> None:
    book = notebook("editor", "1", view=WHOLE_LAB, width=1400)
    book.page.evaluate(
        "() => jupyterapp.commands.execute('settingeditor:open', { query: 'healkit' }).then(() => null)"
    )
    expect(book.page.get_by_text("Load healkit in every notebook")).to_be_visible(timeout=SLOW_MS)
    book.shot("41-settings")
    book.page.evaluate(ACTIVATE, book.path.name)


@pytest.mark.requirement("FACE-9")
def test_the_palette_has_the_commands(notebook: Open) -> None:
    book = notebook("palette", "1", view=WHOLE_LAB)
    book.page.evaluate(
        "() => jupyterapp.commands.execute('apputils:activate-command-palette').then(() => null)"
    )
    book.page.keyboard.type("healkit")
    for name in (
        "Open healkit's Side Panel",
        "Open healkit's Log in a Browser Tab",
        "Go to the Next Failing Cell",
    ):
        expect(book.page.locator(".lm-CommandPalette-item", has_text=name)).to_be_visible()
    book.shot("42-palette")
    book.page.keyboard.press("Escape")
    book.cell(0).locator(".jp-InputPrompt").click()
    book.page.keyboard.press("Alt+Shift+H")
    expect(book.page.locator("#healkit-side-panel .hk")).to_be_visible()


@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_with_the_extension_disabled_the_card_and_the_panel_are_there(
    disabled: None, notebook: Open, view: str
) -> None:
    book = notebook(f"disabled_{len(view)}", LOAD, BROKEN, view=view)
    book.page.reload()
    book.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=SLOW_MS)
    book.ready()
    assert book.page.evaluate("globalThis.__healkitLab === undefined")
    book.run(0)
    book.run(1)
    expect(book.panel(1)).to_contain_text("division by zero", timeout=SLOW_MS)
    expect(book.page.locator(".hk-lab-fix, .hk-lab-card")).to_have_count(0)
    assert not of_extension(book)


@pytest.mark.slow
@pytest.mark.requirement("FACE-12")
@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast"])
def test_axe_finds_nothing_serious_in_cards_and_buttons(notebook: Open, axe: str, theme: str) -> None:
    book = notebook(f"axe_{theme[-5:].strip()}", LOAD, "%config HealkitMagics.explain = 'why'", BROKEN)
    page: Page = book.page
    try:
        book.choose_theme(theme)
        for number in range(3):
            book.run(number)
        expect(book.cell(2).locator(".hk-lab-card")).to_be_visible(timeout=SLOW_MS)
        for fold in book.cell(2).locator("details").all():
            fold.evaluate("(fold) => { fold.open = true; }")
        page.evaluate(axe)
        found = page.evaluate("() => axe.run('.hk-lab-card, .hk-lab-fix')")
        serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        assert not serious, json.dumps(serious, indent=1)[:3000]
        book.shot(f"43-card-{theme.split()[-1].lower()}", book.cell(2))
    finally:
        book.choose_theme("JupyterLab Light")
