"""Heal panel: questions, consent, and taking a patch back."""

from __future__ import annotations

import json

import pytest
from browser_lab import CONTRAST, SLOW_MS, WHOLE_LAB, Notebook
from browser_panels import CONTRAST_LEAST, Open, failing, press
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FILL = """
from healkit import Healkit
hk = Healkit()
code = "def fee(items: int) -> int:\\n    # twenty from ten items on\\n    if items > 10:\\n        return 20\\n    return 0\\n"
hk.vault.add("fee", code, examples=[{"arguments": {"items": 10}, "result": 20}, {"arguments": {"items": 3}, "result": 0}])
"""


def readable(book: Notebook, panel: Locator, name: str) -> None:
    """In both themes, and never wider than its place."""
    for theme, mark in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        book.choose_theme(theme)
        expect(panel).to_have_attribute("data-theme", mark, timeout=SLOW_MS)
        expect(book.page.locator("#jupyterlab-splash")).to_have_count(0, timeout=SLOW_MS)
        worst = panel.evaluate(CONTRAST)
        assert worst["ratio"] >= CONTRAST_LEAST, (name, theme, worst)
        assert panel.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth + 1")
        book.shot(f"{name}-{mark}", panel)


@pytest.mark.requirement("FACE-4", "HEAL-1", "HEAL-3", "HEAL-4")
def test_a_question_is_answered_a_patch_kept_and_taken_back_while_the_kernel_is_free(notebook: Open) -> None:
    book = notebook(
        "fee", FILL, "hk.heal_panel('fee', advisors=['search'], budget_s=60)", "hk.vault.get('fee').revision"
    )
    book.run(0)
    book.run(1)
    panel = book.panel(1)
    card = book.cell(1).locator(".jp-OutputArea-child").first
    expect(card).to_contain_text("The report stands here once there is one.")
    assert "stands here once there is one" in json.dumps(book.save()["cells"][1]["outputs"][0])
    panel.get_by_role("button", name="Heal").focus()
    book.shot("20-heal-begin", panel)
    book.page.keyboard.press("Enter")
    question = panel.get_by_role("group", name="question")
    expect(question).to_contain_text("What is the right result of fee(items=", timeout=SLOW_MS)
    readable(book, panel, "21-heal-question")
    book.page.reload()  # and nothing of it is lost
    book.ready()
    panel = book.panel(1)
    question = panel.get_by_role("group", name="question")
    expect(question).to_be_visible(timeout=SLOW_MS)
    expect(card).to_contain_text("It has a question. What is the right result of fee(items=", timeout=SLOW_MS)
    book.run(2)  # the kernel is free meanwhile
    expect(book.cell(2)).to_contain_text("1")
    consent = panel.get_by_role("group", name="consent")
    for number in range(1, 4):
        expect(
            panel.get_by_role("group", name="question").get_by_text(f"Question {number} of").or_(consent)
        ).to_be_visible(timeout=SLOW_MS)
        if consent.is_visible():
            break
        call = question.locator(".hk-headline code").inner_text()
        right = "20" if int(call.removeprefix("fee(items=").removesuffix(")")) >= 10 else "0"
        question.get_by_label("another value").fill(right)
        book.page.keyboard.press("Enter")
    expect(consent).to_contain_text("A patch: fixed, no regressions", timeout=SLOW_MS)
    expect(consent).to_contain_text("items >= 10")
    readable(book, panel, "22-heal-consent")
    book.save()
    book.page.reload()
    book.ready()
    panel = book.panel(1)
    consent = panel.get_by_role("group", name="consent")
    expect(consent).to_contain_text("items >= 10", timeout=SLOW_MS)
    consent.get_by_role("button", name="Keep").focus()
    book.page.keyboard.press("Enter")
    report = panel.get_by_role("group", name="report")
    expect(report).to_contain_text("fee v2 is active: fixed, no regressions", timeout=SLOW_MS)
    expect(report.get_by_role("button", name="Undo")).to_be_focused()
    readable(book, panel, "23-heal-report")
    press(panel, "Step by step")
    expect(panel.locator(".hk-timeline")).to_contain_text(
        "How fee v1 was healed, step by step", timeout=SLOW_MS
    )
    press(panel, "Undo")
    expect(report).to_contain_text("Undone: fee v3 is active", timeout=SLOW_MS)
    book.run(2)
    expect(book.cell(2)).to_contain_text("3")
    assert book.problems == []


FILL_FRAME = """
import pandas as pd
from healkit import Healkit
hk = Healkit()
sales = pd.DataFrame({"city": ["Bern", "Basel", "Chur"], "units": [3, 5, 4]})
code = "def best(sales: pd.DataFrame) -> pd.DataFrame:\\n    return sales[sales['units'] == sales['units'].min()]\\n"
hk.vault.add("best", "import pandas as pd\\n\\n\\n" + code, examples=[{"arguments": {"sales": sales}, "result": sales[1:2]}])
"""


@pytest.mark.requirement("DATA-5", "HEAL-4")
def test_a_question_on_a_frame_is_asked_with_tables(notebook: Open) -> None:
    book = notebook("best", FILL_FRAME, "hk.heal_panel('best', advisors=['search'], budget_s=60)")
    book.run(0)
    book.run(1)
    panel = book.panel(1)
    press(panel, "Heal")
    question = panel.get_by_role("group", name="question")
    expect(question).to_contain_text("What is the right result of best(sales=", timeout=SLOW_MS)
    expect(question.get_by_label("the table sales")).to_contain_text("units")
    choices = question.get_by_role("group", name="results of the patches")
    expect(choices.locator("pre").first).to_contain_text("city")
    readable(book, panel, "26-heal-question-table")
    choices.get_by_role("button").first.click()
    expect(panel.get_by_role("group", name="consent").or_(question)).to_be_visible(timeout=SLOW_MS)
    assert book.problems == []


@pytest.mark.requirement("FACE-4", "HEAL-4")
def test_a_failure_is_healed_from_its_own_panel_stopped_and_its_notebook_keeps_the_report(
    notebook: Open,
) -> None:
    book, panel = failing(notebook, "half_of", "%heal half_of --panel --with rules", width=390)
    press(panel, "✚ Fix")
    heal = panel.get_by_role("group", name="healing of half_of")
    expect(heal.get_by_role("button", name="Stop")).to_be_visible(timeout=SLOW_MS)
    expect(heal.get_by_role("log")).to_contain_text("Asking", timeout=SLOW_MS)
    book.shot("24-heal-narrow", panel)
    heal.get_by_role("button", name="Stop").or_(heal.get_by_role("button", name="Later")).click()
    expect(heal.get_by_role("group", name="report")).to_be_visible(timeout=SLOW_MS)
    readable(book, panel, "25-heal-narrow-report")
    heal.get_by_text("Settings").click()
    heal.get_by_label("peers").wait_for(timeout=SLOW_MS)
    heal.get_by_label("seconds for the whole healing").fill("0")
    heal.get_by_role("button", name="✚ Heal again").click()
    expect(heal.get_by_role("alert")).to_contain_text("greater than 0", timeout=SLOW_MS)
    book.run(3)
    other = book.panel(3)
    expect(other.get_by_role("group", name="report")).to_be_visible(
        timeout=SLOW_MS
    )  # one healing for each tool
    card = json.dumps(book.save()["cells"][3]["outputs"][0])
    assert "half_of v1: " in card
    assert "<button" not in card
    book.page.reload()
    book.ready()
    expect(book.panel(2).get_by_role("group", name="report")).to_be_visible(timeout=SLOW_MS)
    assert book.problems == []


@pytest.mark.requirement("FACE-4", "HEAL-4")
def test_a_kernel_that_is_restarted_is_said_to_be_gone_and_its_patch_waits(notebook: Open) -> None:
    waiting = (
        "from healkit import Healkit\n[request.label for request in Healkit().requests.pending('third_of')]"
    )
    cells = ("%heal third_of --panel --dock --with rules", waiting, "%heal third_of --panel")
    book, _ = failing(notebook, "third_of", *cells, view=WHOLE_LAB)
    book.run(3)
    expect(book.cell(3)).to_contain_text("Healing of third_of: open on the right side of the window.")
    panel = book.page.locator("#jp-right-stack .hk")
    press(panel, "✚ Heal")
    consent = panel.get_by_role("group", name="consent")
    expect(consent).to_contain_text("A patch: only hides the error", timeout=SLOW_MS)
    expect(consent.locator(".hk-primary")).to_have_count(0)  # nothing that is to be kept without a thought
    assert panel.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth + 1")
    book.shot("26-heal-docked")
    book.page.evaluate("() => { jupyterapp.commands.execute('notebook:restart-kernel'); }")
    expect(panel).to_contain_text("The kernel does not answer", timeout=SLOW_MS)
    expect(consent.get_by_role("button", name="Keep")).to_be_disabled()
    book.ready()
    book.run(4)
    expect(book.cell(4)).to_contain_text("['third_of v1']")
    book.run(0)
    book.run(5)
    expect(book.panel(5).get_by_role("button", name="✚ Heal")).to_be_visible(timeout=SLOW_MS)
    assert book.problems == []
