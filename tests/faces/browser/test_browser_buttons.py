"""Each button of each panel, with every kind of argument."""

from __future__ import annotations

import re

import pytest
from browser_lab import NO_EXTENSION, SLOW_MS, Lab
from browser_panels import LOAD, Open, fix, open_editor, outcome, press
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

FILL = """
import datetime
import numpy as np, pandas as pd
from healkit import Healkit
hk = Healkit()
sales = pd.DataFrame({"city": ["Bern", "Uster"] * 50_000, "units": range(100_000)})
given = {
    "frame": sales, "few": sales.head(2), "array": np.zeros((50, 20)), "when": datetime.date(2026, 2, 1),
    "odd": {"parts": ({1, 2}, 1 + 2j, b"x", sales)}, "long": "x" * 30_000, "plain": [1, None, "x"], "top": 2,
}
"""
TOOL = (
    "%%tool kinds\nimport pandas as pd\n\n\ndef kinds(frame: pd.DataFrame, few, array, when, odd, long, plain, top: int):\n"
    "    units = frame['unit']\n    return int(units.sum()) + top"
)
RUN = '_ = hk.execute("kinds", arguments=given)\nhk.panels and None\n%trace_last_error kinds'
KEPT = (
    "frame: DataFrame 100,000 × 2, as in log row 1", "few: DataFrame({'city': ['Bern', 'Uster'], 'units': [0, 1]}), as in",
    "array: ndarray 50 × 20, as in", "when: datetime.date(2026, 2, 1), as in",
    "odd: {'parts': ({1, 2}, (1+2j), b'x', DataFrame 100,000 × 2)}, as in", "long: 'xxxx",
)  # fmt: skip
SUM = str(sum(range(100_000)) + 2)
#: What no panel may show: an internal class, an address, an internal error.
OURS = re.compile(r"<healkit\.| object at 0x|PANEL_ERROR|fault of healkit")


def shown(panel: Locator) -> str:
    """Return all text of a panel, also of folded parts; fail where it shows something internal."""
    text = panel.text_content() or ""
    found = OURS.search(text)
    assert found is None, text[max(found.start() - 300, 0) : found.end() + 300]
    return text


@pytest.mark.requirement("FACE-4", "FACE-8", "DATA-5")
def test_each_button_below_a_failure_works_with_every_kind_of_argument(notebook: Open, lab: Lab) -> None:
    """D2, D3: Try was a fault of healkit's for anything that JSON cannot hold."""
    book = notebook("kinds", LOAD + FILL, TOOL, RUN, "%executions", height=1800)
    book.page.evaluate(NO_EXTENSION)  # with it, what is kept is run in the cell, and the panel goes
    for number in range(3):
        book.run(number)
    panel = book.panel(2)
    editor = open_editor(panel)
    kept = panel.get_by_label("arguments that are used unchanged").get_by_role("listitem")
    expect(kept).to_have_count(len(KEPT))
    for one, said in zip(kept.all(), KEPT, strict=True):
        expect(one).to_contain_text(said)
    expect(panel.get_by_role("textbox", name="arguments")).to_contain_text('"top": 2')
    expect(panel.get_by_role("textbox", name="arguments")).not_to_contain_text("frame")
    shown(panel)
    press(panel, "▶ Try")
    expect(outcome(panel, "false")).to_contain_text("unit")
    editor.get_by_text("return").click()
    press(panel, "Discard")
    press(panel, "✎ Edit")
    fix(book, editor, "1 + 1 if plain else units")
    press(panel, "✓ Accept untried")
    expect(panel.locator(".hk-said")).to_contain_text("✓ kinds v2 is active.", timeout=SLOW_MS)
    expect(panel).to_contain_text("✓ v2 is active.")
    press(panel.locator(".hk-editor"), "↻ Re-run")
    outcome(panel, "false")
    press(panel, "v1 ✗")
    press(panel, "Compare with it")
    press(panel, "Go back to it…")
    press(panel, "Make v1's code the active one")
    expect(panel.locator(".hk-said")).to_contain_text("✓ kinds v3 is active (the code of v1 again).")
    press(panel.locator(".hk-editor"), "Reset")
    panel.get_by_text("Input schema").click()
    press(panel, "Read it from the code")
    expect(panel).to_contain_text("✓ Schema read from the code.")
    press(panel, "✎ Edit")
    press(panel, "Look inside")  # before a fourth failure takes the place of its worker
    panel.get_by_label("expression to evaluate in this frame").fill("len(odd) + 40")
    press(panel, "Evaluate")
    expect(panel.locator(".hk-answer")).to_contain_text("41", timeout=SLOW_MS)
    press(panel, "↻ Re-run")
    expect(panel.locator(".hk-outcome").first).to_contain_text("✗ kinds v3", timeout=SLOW_MS)
    press(panel, "Share")
    press(panel, "Save as a notebook")
    expect(panel).to_contain_text("written: it runs without healkit.", timeout=SLOW_MS)
    assert OURS.search((lab.folder / "kinds_row_1.ipynb").read_text()) is None
    book.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    press(panel, "Copy as bug report")
    expect(panel).to_contain_text("✓ Copied: paste it into an issue.", timeout=SLOW_MS)
    copied = book.page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("## kinds v1 failed: KeyError")
    book.page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    press(panel, "Copy as bug report")
    report = panel.get_by_role("textbox", name="bug report")
    expect(report).to_be_focused(timeout=SLOW_MS)
    assert report.input_value() == copied
    shown(panel)
    press(panel, "✚ Fix")
    heal = panel.get_by_role("group", name="healing of kinds")
    consent = panel.get_by_role("group", name="consent")
    press(consent, "Later")  # a peer's, the revision of before
    heal.get_by_text("Settings").click(timeout=SLOW_MS)
    for advisor in ("peers", "model"):
        if (box := heal.get_by_role("checkbox", name=advisor)).is_enabled():
            box.uncheck()
    press(heal, "✚ Heal again")
    expect(consent).to_contain_text("Tried on 1,000 of 100,000 rows.", timeout=SLOW_MS)
    shown(panel)
    press(consent, "Keep")
    report = panel.get_by_role("group", name="report")
    expect(report).to_contain_text("kinds v4 is active: passes all checks, unverified", timeout=SLOW_MS)
    expect(panel).to_contain_text("✓ v4 is active.")
    press(report, "↻ Re-run")
    expect(report.locator(".hk-outcome")).to_contain_text(SUM, timeout=SLOW_MS)
    press(panel, "Step by step")
    timeline = panel.locator(".hk-timeline")
    expect(timeline).to_contain_text("Step 1 of", timeout=SLOW_MS)
    for step in ("last step", "step back", "step forward", "first step"):
        press(timeline, step)
        shown(timeline)
    press(timeline, "▶ Play")
    press(timeline, "❚❚ Pause")
    press(report, "Change it yourself")
    press(report, "Undo")
    expect(report).to_contain_text("Undone: kinds v5 is active", timeout=SLOW_MS)
    shown(panel)

    book.run(3)  # the log
    panel = book.panel(3)
    rows = panel.locator(".hk-rows tbody tr")
    expect(rows.first).to_be_visible(timeout=SLOW_MS)
    assert panel.bounding_box()["y"] < book.cell(3).locator("details").last.bounding_box()["y"]  # type: ignore[index]  # both are drawn
    expect(panel).to_contain_text("kinds v4 heal")
    press(panel, "Show them")
    expect(panel).to_contain_text("kinds trial")
    shown(panel)
    assert book.problems == []
