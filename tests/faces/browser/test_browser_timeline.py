"""Heal timeline, stepped through by a person and by a class."""

from __future__ import annotations

import pytest
from browser_lab import CONTRAST, SLOW_MS, Lab, Notebook
from browser_panels import CONTRAST_LEAST, Open, outcome, press
from playwright.sync_api import Locator, expect
from timeline_samples import BROKEN, healing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def opened(notebook: Open, lab: Lab, name: str, teach: bool, **window: int) -> tuple[Notebook, Locator]:
    """Open a timeline of a healing, below the second cell."""
    healing(lab.folder / "runs", name, log_id=None)
    fill = f"""
from healkit import Healkit
hk = Healkit()
if "average_delay" not in hk.vault.names():
    hk.vault.add("average_delay", {BROKEN!r})
"""
    book = notebook(name, fill, f"hk.timeline({name!r}, teach={teach})", **window)
    book.run(0)
    book.run(1)
    return book, book.panel(1)


def headline(panel: Locator) -> Locator:
    return panel.locator(".hk-step .hk-headline")


@pytest.mark.requirement("FACE-4", "RUN-8")
def test_a_healing_is_stepped_through_by_keyboard_and_needs_no_kernel_for_it(
    notebook: Open, lab: Lab
) -> None:
    book, panel = opened(notebook, lab, "stepped", teach=False)
    keyboard = book.page.keyboard
    expect(book.cell(1).locator(".jp-OutputArea-child").last).to_contain_text("The search proposes patch 3.")
    expect(panel).to_contain_text("Step 1 of 12")
    book.kill_kernel()
    panel.get_by_role("button", name="step forward").focus()
    keyboard.press("ArrowRight")
    expect(headline(panel)).to_contain_text("average_delay v1 failed: ZeroDivisionError: division by zero.")
    expect(panel.locator(".hk-failing-line")).to_contain_text("return round(total / buses, 1)")
    for _ in range(3):
        keyboard.press("ArrowRight")
    expect(headline(panel)).to_contain_text("A rule proposes patch 1.")
    expect(panel.locator(".cm-merge-b")).to_contain_text("except ZeroDivisionError")
    book.shot("15-timeline-patch", panel)
    keyboard.press("ArrowRight")
    expect(headline(panel)).to_contain_text("Patch 1: only hides the error.")
    keyboard.press("End")
    expect(headline(panel)).to_contain_text("The healing ends: patch accepted.")
    keyboard.press("ArrowLeft")
    expect(headline(panel)).to_contain_text("Patch 3 was accepted: v2 is the active revision.")
    keyboard.press("Home")
    expect(headline(panel)).to_contain_text("A healing begins.")
    strip = panel.get_by_role("group", name="patches that were tried").get_by_role("button")
    expect(strip).to_have_text(
        [
            "1 – only hides the error rules",
            "2 ✗ does not fix it search",
            "3 ✓ fixed, no regressions searchkept",
        ]
    )
    strip.nth(1).click()
    expect(headline(panel)).to_contain_text("The search proposes patch 2.")
    keyboard.press("ArrowRight")
    expect(panel.locator(".hk-check").first).to_contain_text("a recorded run that passed")
    expect(panel.locator(".hk-check").first).to_contain_text("got 2.7, wanted 3.5")
    panel.get_by_role("slider", name="step").focus()
    keyboard.press("ArrowRight")
    expect(panel).to_contain_text("Step 9 of 12")
    assert book.problems == []


@pytest.mark.requirement("FACE-4", "RUN-8")
def test_a_class_is_asked_before_each_patch_and_sees_its_edit_beside_the_patch(
    notebook: Open, lab: Lab
) -> None:
    book, panel = opened(notebook, lab, "taught", teach=True)
    keyboard = book.page.keyboard
    expect(book.cell(1).locator(".jp-OutputArea-child").last).not_to_contain_text("patch 1")
    press(panel, "last step")  # and no further than the first patch
    expect(headline(panel)).to_contain_text("Before patch 1: what would you change?")
    expect(panel.locator(".hk-step")).not_to_contain_text("except ZeroDivisionError")
    strip = panel.get_by_role("group", name="patches that were tried").get_by_role("button")
    expect(strip.first).to_have_text("1 … rules")
    editor = panel.get_by_role("textbox", name="your edit")
    editor.get_by_text("return", exact=True).click()
    keyboard.press("End")
    keyboard.type(" if buses else None")
    keyboard.press("ArrowLeft")  # moves in the text, and nowhere else
    expect(headline(panel)).to_contain_text("Before patch 1")
    press(panel, "▶ Try your edit")
    expect(outcome(panel, "true")).to_contain_text("null")
    book.shot("16-timeline-pause", panel)
    keyboard.press("Escape")
    press(panel, "Show the patch")
    expect(headline(panel)).to_contain_text("A rule proposes patch 1.")
    figures = panel.locator("figure")
    expect(figures.nth(0)).to_contain_text("if buses else None")
    expect(figures.nth(1)).to_contain_text("except ZeroDivisionError")
    book.shot("17-timeline-beside", panel)
    book.page.set_viewport_size({"width": 390, "height": 900})
    for theme, mark in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        book.choose_theme(theme)
        expect(panel).to_have_attribute("data-theme", mark, timeout=SLOW_MS)
        worst = panel.evaluate(CONTRAST)
        assert worst["ratio"] >= CONTRAST_LEAST, (theme, worst)
        assert panel.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth + 1")
        box = panel.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 391
        book.shot(f"18-timeline-narrow-{mark}", panel)
    book.page.set_viewport_size({"width": 1280, "height": 900})
    press(panel, "step forward")
    expect(strip.first).to_have_text("1 – only hides the error rules")
    press(panel, "last step")
    expect(headline(panel)).to_contain_text("Before patch 2: what would you change?")
    expect(panel.get_by_role("textbox", name="your edit")).to_contain_text("if buses else None")
    at = panel.get_by_role("slider", name="step").input_value()
    book.wait_for_memory(f"'at': {at},")
    book.save()
    book.page.reload()
    book.ready()
    panel = book.panel(1)
    expect(headline(panel)).to_contain_text("Before patch 2: what would you change?", timeout=SLOW_MS)
    expect(panel.get_by_role("textbox", name="your edit")).to_contain_text("if buses else None")
    assert book.problems == []
