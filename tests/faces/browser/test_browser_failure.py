"""Failure in a browser, from its card to the fixed run.

The one page of the quick tier.
"""

from __future__ import annotations

import pytest
from browser_lab import SLOW_MS
from browser_panels import Open, failing, fix, open_editor, outcome, press
from playwright.sync_api import expect

pytestmark = pytest.mark.timeout(300)


@pytest.mark.requirement("FACE-4", "VAULT-5")
def test_a_failure_is_fixed_tried_accepted_rerun_and_reverted(
    notebook: Open,
) -> None:
    book, panel = failing(notebook, "mean_of")
    outputs = book.cell(2).locator(".jp-OutputArea-child")
    expect(outputs.nth(0)).to_contain_text("ZeroDivisionError")  # the cell's own error, untouched and on top
    expect(panel).to_contain_text("✗ mean_of v1 ZeroDivisionError: division by zero")
    book.shot("1-card-and-panel")
    editor = open_editor(panel)
    expect(panel.locator(".cm-merge-b .hk-failing-line")).to_contain_text("return total / 0")
    cells = book.cells()
    fix(book, editor)
    assert book.cells() == cells
    expect(panel.get_by_role("button", name="✓ Accept untried")).to_be_enabled()
    press(panel, "▶ Try")
    expect(outcome(panel, "true")).to_contain_text("✗ ZeroDivisionError: division by zero")  # what it was
    expect(panel.locator(".cm-merge-b .hk-failing-line")).to_have_count(0)
    expect(panel.locator(".hk-outcome")).to_contain_text("5.0")
    panel.get_by_label("reason for this revision").fill("divide by how many there are")
    book.shot("2-tried", panel)
    press(panel, "✓ Accept")
    expect(panel.locator(".hk-said")).to_contain_text("✓ mean_of v2 is active.")
    panel.get_by_role("button", name="↻ Re-run").last.click()
    expect(panel.locator(".hk-outcome")).to_contain_text("mean_of v2", timeout=SLOW_MS)
    outcome(panel, "true")
    strip = panel.locator(".hk-strip")
    expect(strip.get_by_role("button").nth(0)).to_contain_text("v2 ✓ 1 run")
    expect(strip.get_by_role("button").nth(1)).to_contain_text("v1 ✗ 1 failure of 1 run")
    strip.get_by_role("button").nth(1).click()
    expect(panel.locator(".hk-history-detail")).to_contain_text("first failure")
    book.shot("3-accepted", panel)
    press(panel, "Go back to it…")
    press(panel, "Make v1's code the active one")
    expect(panel.locator(".hk-said")).to_contain_text("mean_of v3 is active (the code of v1 again)")
    assert book.cells() == cells
    assert book.problems == []
