"""Panels in a real JupyterLab, used as a person uses them."""

from __future__ import annotations

import pytest
from browser_lab import CONTRAST, SLOW_MS
from browser_panels import CONTRAST_LEAST, LOAD, Open, failing, fix, open_editor, outcome, press
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.requirement("FACE-4")
def test_of_a_long_code_the_failing_line_is_in_view_with_the_cursor_in_it(notebook: Open) -> None:
    steps = "".join(f"    step_{number} = values  # größer als eins\n" for number in range(60))
    code = f"%%tool longest\ndef longest(values: list):\n{steps}    return values / 0"
    book = notebook("longest", LOAD, code, "%run_tool longest values=[2]")
    for number in range(2):
        book.run(number)
    for width in (1280, 600):
        book.page.set_viewport_size({"width": width, "height": 900})
        book.run(2)
        panel = book.panel(2)
        editor = open_editor(panel)
        line = editor.locator(".hk-failing-line")
        expect(line).to_contain_text("return values / 0")
        area, place = panel.locator(".hk-code-area").bounding_box(), line.bounding_box()
        assert area is not None
        assert place is not None
        assert area["y"] <= place["y"] <= area["y"] + area["height"] - place["height"]
        expect(editor).to_be_focused()
        book.page.keyboard.type("1 + ")
        expect(line).to_contain_text("1 + return values / 0")
    assert book.problems == []


def nothing_can_be_pressed(panel: Locator) -> None:
    """U7: after a shutdown of the kernel the buttons of its panels looked alive; one runs the cells again."""
    expect(panel).to_contain_text(
        "The kernel was restarted. Run the cells above, then this one.", timeout=SLOW_MS
    )
    expect(panel.locator("button:enabled, input:enabled, select:enabled")).to_have_text(["▶ Run them"])
    for name in ("✚ Fix", "↻ Re-run"):
        expect(panel.get_by_role("button", name=name).first).to_have_css("cursor", "default")


@pytest.mark.requirement("FACE-4")
def test_everything_is_done_from_the_keyboard_and_no_shortcut_fires_until_a_shutdown(notebook: Open) -> None:
    book, panel = failing(notebook, "median_of", "1 + 1")
    cells, keyboard = book.cells(), book.page.keyboard
    panel.get_by_role("button", name="✎ Edit").focus()
    keyboard.press("Enter")
    editor = panel.get_by_role("textbox", name="code", exact=True)
    expect(editor).to_be_focused()
    keyboard.press("Control+End")
    keyboard.type("# dd aa bb xx 00 ii")  # in command mode: delete, insert, cut, restart, interrupt
    keyboard.press("Shift+Enter")  # elsewhere: run the cell
    expect(editor).to_contain_text("# dd aa bb xx 00 ii")
    keyboard.press("Escape")
    expect(panel.get_by_role("button", name="▶ Try")).to_be_focused()
    for key in ("d", "d", "a", "b", "x", "m"):
        keyboard.press(key)
    assert book.cells() == cells
    keyboard.press("Tab")
    expect(panel.get_by_role("button", name="✓ Accept untried")).to_be_focused()
    keyboard.press("Tab")
    expect(panel.get_by_label("reason for this revision")).to_be_focused()
    keyboard.type("dd")
    keyboard.press("Escape")
    expect(panel.get_by_role("button", name="✓ Accept untried")).to_be_focused()
    keyboard.press("Shift+Tab")
    keyboard.press("Enter")
    outcome(panel, "false")
    editor.focus()
    keyboard.press("Control+Enter")
    expect(panel.locator(".hk-outcome")).to_have_count(1)
    press(panel, "Look inside")
    expression = panel.get_by_label("expression to evaluate in this frame")
    expression.wait_for()
    expression.focus()
    keyboard.type("total")
    keyboard.press("Enter")
    expect(panel.locator(".hk-answer")).to_contain_text("15")
    assert book.cells() == cells
    expect(book.cell(3).locator(".jp-InputPrompt")).to_have_text("[ ]:")
    assert book.cell(2).locator(".jp-mod-command-mode, .jp-OutputArea").count() > 0
    book.page.evaluate("() => { jupyterapp.commands.execute('kernelmenu:shutdown'); }")
    nothing_can_be_pressed(panel)
    assert book.problems == []


@pytest.mark.requirement("FACE-4")
def test_an_unsaved_patch_outlives_a_reload_and_the_card_outlives_the_kernel(notebook: Open) -> None:
    book, panel = failing(notebook, "spread_of")
    fix(book, open_editor(panel), "max(values)")
    book.wait_for_memory("total / max(values)")
    book.save()
    book.page.reload()
    book.ready()
    panel = book.panel(2)
    expect(panel.locator(".cm-merge-b")).to_contain_text("return total / max(values)", timeout=SLOW_MS)
    expect(panel.locator(".hk-said")).to_contain_text("Unsaved changes were kept.")
    press(panel, "▶ Try")
    outcome(panel, "true")
    panel.get_by_text("Input schema").click()
    panel.get_by_role("textbox", name="input schema").get_by_text("array").dblclick()
    book.page.keyboard.type("number")
    press(panel, "Save schema")
    expect(panel).to_contain_text("✓ Schema saved.")
    press(panel, "▶ Try")
    expect(panel.get_by_role("alert")).to_contain_text("'values' must be number, got [2, 4, 9] (list)")
    press(panel, "Read it from the code")
    expect(panel).to_contain_text("✓ Schema read from the code.")
    book.kill_kernel()
    nothing_can_be_pressed(panel)
    card = book.cell(2).locator(".jp-OutputArea-child").nth(1)
    expect(card).to_contain_text("✗ ZeroDivisionError: division by zero")
    book.page.reload()
    expect(card).to_contain_text("return total / 0", timeout=SLOW_MS)
    expect(card).to_contain_text("{'values': [2, 4, 9]}")
    book.shot("4-without-its-kernel")


@pytest.mark.requirement("FACE-4", "WORK-5")
def test_both_themes_and_a_narrow_window_are_readable_and_no_secret_local_is_shown(notebook: Open) -> None:
    code = """%%tool seat_of
def seat_of(name: str):
    password = "-".join(["hunter2", "is", "mine"])
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    return {"Ann": 1}[name]"""
    book = notebook("seat_of", LOAD, code, "%run_tool seat_of name='Zoe'", "%executions", width=390)
    for number in range(3):
        book.run(number)
    panel = book.panel(2)
    press(panel, "✎ Edit")
    panel.get_by_role("textbox", name="code", exact=True).wait_for()
    press(panel, "▶ Try")
    outcome(panel, "false")
    press(panel, "Look inside")
    expect(panel).to_contain_text("2 values hidden: they looked like secrets.", timeout=SLOW_MS)
    expression = panel.get_by_label("expression to evaluate in this frame")
    expression.fill("token")
    expression.press("Enter")
    expect(panel.locator(".hk-answer")).to_contain_text("REDACTED", timeout=SLOW_MS)
    book.run(3)
    browser = book.panel(3)
    browser.locator(".hk-rows").wait_for()
    for place in (panel, browser):
        assert place.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth + 1")
        assert place.bounding_box()["x"] + place.bounding_box()["width"] <= 391
    book.shot("5-narrow", panel)
    book.shot("6-narrow-log", browser)
    for theme, mark in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        book.choose_theme(theme)
        expect(panel).to_have_attribute("data-theme", mark, timeout=SLOW_MS)
        for place in (panel, browser):
            worst = place.evaluate(CONTRAST)
            assert worst["ratio"] >= CONTRAST_LEAST, (theme, worst)
        book.page.set_viewport_size({"width": 1280, "height": 900})
        panel.get_by_label("side by side").check()
        panel.locator(".cm-merge-a").wait_for()
        assert panel.evaluate(CONTRAST)["ratio"] >= CONTRAST_LEAST
        book.shot(f"7-{mark}", panel)
        book.page.set_viewport_size({"width": 390, "height": 900})
        panel.locator(".cm-merge-a").wait_for(state="detached")
    assert book.problems == []
    shown = book.page.content() + str(book.save())
    assert "hunter2-is-mine" not in shown
    assert "ghp_16C7e42F292c6912E7710c838347Ae178B4a" not in shown


@pytest.mark.requirement("FACE-4")
def test_a_try_that_never_ends_is_stopped_and_a_patch_that_was_overtaken_is_compared(notebook: Open) -> None:
    theirs = "from healkit import Healkit\nwith Healkit() as hk:\n"
    theirs += "    hk.vault.patch('ratio_of', 'def ratio_of(values: list):\\n    return 0')"
    book, panel = failing(notebook, "ratio_of", "'the kernel ' + 'is free'", theirs)
    editor = open_editor(panel)
    editor.get_by_text("total = sum").click()
    book.page.keyboard.press("End")
    book.page.keyboard.type("\nwhile True: pass")
    press(panel, "▶ Try")
    expect(panel.locator(".hk-progress")).to_contain_text("Trying in a restricted worker")
    book.run(3)
    expect(book.cell(3)).to_contain_text("the kernel is free")
    press(panel, "■ Stop")
    expect(outcome(panel, "false")).to_contain_text("TOOL_KILLED")
    book.run(3)  # the kernel is the same one
    expect(book.cell(3).locator(".jp-InputPrompt")).to_have_text("[5]:")
    press(panel, "Discard")
    press(panel, "✎ Edit")
    fix(book, editor)
    book.run(4)
    press(panel, "Accept untried")
    expect(panel.get_by_role("alert")).to_contain_text("v2 was saved in the meantime", timeout=SLOW_MS)
    expect(panel.locator(".cm-merge-a")).to_contain_text("return 0")
    expect(panel.locator(".cm-merge-b")).to_contain_text("return total / len(values)")
    press(panel, "Accept untried")
    expect(panel.locator(".hk-said")).to_contain_text("ratio_of v3 is active", timeout=SLOW_MS)


@pytest.mark.requirement("LOG-10", "LOG-11", "FACE-4")
def test_the_log_is_filtered_searched_grouped_paged_and_watched(notebook: Open) -> None:
    fill = """
from healkit import Healkit
hk = Healkit()
hk.vault.add("halve", "def halve(n: int):\\n    return 10 // n", reason="first")
for n in [1] * 30 + [0] * 3:
    hk.execute("halve", arguments={"n": n})
"""
    raises = """
panel = hk.browse()
def page(filters, before=None):
    raise ZeroDivisionError("the log is on fire; password=hunter2-is-mine")
panel.operations["page"] = page
panel
"""
    run = "hk.execute_tool('halve', arguments={'n': 5})"
    book = notebook("browse", fill, "hk.browse(tool='halve')", run, raises)
    book.run(0)
    book.run(1)
    panel = book.panel(1)
    rows = panel.locator(".hk-rows tbody tr")
    expect(rows).to_have_count(25)
    expect(rows.first).to_contain_text("ZeroDivisionError")
    press(panel, "Older")
    expect(rows).to_have_count(8)
    press(panel, "Newer")
    expect(rows).to_have_count(25)
    press(panel, "Newest")
    panel.get_by_label("status").select_option("FAILURE")
    expect(rows).to_have_count(3)
    panel.get_by_label("words in the traceback").fill("halve zero")
    expect(rows).to_have_count(3)
    panel.get_by_label("words in the traceback").fill("nosuchword")
    expect(panel).to_contain_text("No executions match.")
    panel.get_by_label("words in the traceback").fill("")
    press(panel, "Group similar failures")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("3 ×")
    expect(rows.first).to_contain_text("unresolved")
    press(panel, "halve")
    expect(rows).to_have_count(3)
    press(panel, "halve v1")
    expect(panel.locator(".hk-detail")).to_contain_text("return 10 // n")
    book.shot("10-browser", panel)
    press(panel, "Close")
    press(panel, "× all")
    panel.get_by_label("status").select_option("")
    expect(rows).to_have_count(25)
    book.run(2)
    expect(rows.first).to_contain_text("✓")  # it came in by itself
    book.run(3)  # what a callback raises is seen in the panel
    alert = book.panel(3).get_by_role("alert")
    expect(alert).to_contain_text("ZeroDivisionError: the log is on fire", timeout=SLOW_MS)
    expect(alert).not_to_contain_text("hunter2")
    alert.get_by_text("Details").click()
    expect(alert).to_contain_text(", in page")
    assert book.problems == []
