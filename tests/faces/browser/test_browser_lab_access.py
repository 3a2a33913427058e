"""Extension by keyboard and by axe-core, in three themes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from browser_extension import ORDERS, SUM, THEMES, TYPO, fix_button, open_side, side, tab
from browser_lab import CONTRAST, LAB, NOTEBOOK_7, SLOW_MS, WHOLE_LAB, Notebook
from browser_panels import CONTRAST_LEAST, LOAD, Open, press
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TABS = ("Failures", "Executions", "Tools", "Runs", "Decisions", "Requests")
#: Everything of healkit that the page shows.
OURS = "#healkit-side-panel, .hk-lab-fix, .hk-lab-status, .hk-lab-card, .jp-Cell .hk, [data-jp-item-name=healkit-fix]"
#: Whether the focus can be seen: an outline, or a border or a shadow that is there with the focus only.
VISIBLE = """
() => {
  let at = document.activeElement;
  while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  const look = () => {
    const { outlineStyle, outlineWidth, borderColor, boxShadow, backgroundColor } = getComputedStyle(at);
    return [outlineStyle === "none" ? "0px" : outlineWidth, borderColor, boxShadow, backgroundColor].join(" ");
  };
  const focused = look();
  at.blur();
  const without = look();
  at.focus();
  return focused !== without;
}
"""
FOCUSED = """
() => {
  const at = document.activeElement;
  return `${at.tagName.toLowerCase()} ${at.closest("#healkit-side-panel") ? "side" : at.closest(".jp-Cell") ? "cell" : ""} ${at.textContent.trim()}`;
}
"""


def examined(book: Notebook, theme: str) -> None:
    """Find no serious fault in what is shown, and no text that is hard to read."""
    found: dict[str, Any] = book.page.evaluate(
        "(ours) => axe.run(ours.split(', ').filter((one) => document.querySelector(one)), { resultTypes: ['violations'] })",
        OURS,
    )
    assert found["passes"], "axe has examined nothing"
    faults = [
        (one["id"], node["html"][:200], node["failureSummary"])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
    assert not faults, f"{theme}: {json.dumps(faults[:6], indent=1)}"
    for part in book.page.locator("#healkit-side-panel, .hk-lab-fix, .hk-lab-status, .jp-Cell .hk").all():
        if part.is_visible():
            worst = part.evaluate(CONTRAST)
            assert worst["ratio"] >= CONTRAST_LEAST, (theme, worst)


def press_tab_until(book: Notebook, wanted: str, most: int = 40, key: str = "Tab") -> None:
    """Press Tab until what has the focus reads so; each stop on the way can be seen."""
    for _ in range(most):
        if wanted in book.page.evaluate(FOCUSED):
            assert book.page.evaluate(VISIBLE), wanted
            return
        book.page.keyboard.press(key)
    raise AssertionError(f"{wanted!r} is not reached: {book.page.evaluate(FOCUSED)!r}")


@pytest.mark.requirement("FACE-9", "FACE-12")
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious_in_buttons_cards_proposals_consent_and_side_panel(
    notebook: Open, axe: str, theme: str
) -> None:
    name = f"axe_{theme.split()[-1].lower()}"
    tool = f"%%tool {name}\n{TYPO}".replace("NAME", name)
    cells = (LOAD, tool, f"%run_tool {name} values=[2,4]", ORDERS, SUM, "[][1]")
    book = notebook(name, *cells, view=WHOLE_LAB, width=1600, height=1000)
    try:
        book.choose_theme(theme)
        for number in range(len(cells)):
            book.run(number)
        book.page.evaluate(axe)
        fix_button(book, 2).click()
        book.panel(2).get_by_role("group", name="consent").wait_for(timeout=SLOW_MS)
        fix_button(book, 4).click()
        book.panel(4).get_by_role("group", name="proposal").wait_for(timeout=SLOW_MS)
        open_side(book.page)
        examined(book, theme)
        book.shot(f"50-{name}")
        press(book.panel(2), "Later")
        expect(book.panel(2)).to_contain_text("waiting for your approval", timeout=SLOW_MS)
        for one in TABS:
            tab(book.page, one).click()
            expect(tab(book.page, one)).to_have_attribute("aria-selected", "true")
            examined(book, f"{theme}, {one}")
            first = side(book.page).locator(".hk-side-row").first
            if one in ("Failures", "Tools", "Requests"):
                first.click()
                expect(side(book.page).locator(".hk-side-detail")).not_to_contain_text(
                    "Opening", timeout=SLOW_MS
                )
                examined(book, f"{theme}, {one}, opened")
                book.shot(f"51-{name}-{one.lower()}")
                book.page.keyboard.press("Escape")
    finally:
        book.choose_theme("JupyterLab Light")


@pytest.mark.requirement("FACE-9", "FACE-12")
def test_a_fix_and_the_side_panel_by_keyboard_alone_with_the_focus_in_sight(notebook: Open) -> None:
    book = notebook("keys", LOAD, ORDERS, SUM, view=WHOLE_LAB, width=1500)
    for number in range(3):
        book.run(number)
    book.panel(2)
    keyboard = book.page.keyboard
    keyboard.press("Escape")
    press_tab_until(book, "cell Fix")
    book.shot("52-keys-button", book.cell(2))
    keyboard.press("Enter")
    book.cell(2).get_by_role("group", name="proposal").wait_for(timeout=SLOW_MS)
    press_tab_until(book, "Apply and run")
    book.shot("53-keys-apply", book.cell(2))
    keyboard.press("Enter")
    expect(book.cell(2)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    keyboard.press("Alt+Shift+H")
    expect(side(book.page).locator(".hk-side-foot")).to_contain_text("isolation", timeout=SLOW_MS)
    press_tab_until(book, "side Failures", most=80)
    keyboard.press("ArrowRight")
    assert "side Executions" in book.page.evaluate(FOCUSED)
    expect(side(book.page).locator(".hk-side-row").first).to_be_visible(timeout=SLOW_MS)
    for _ in range(12):
        if book.page.evaluate("document.activeElement.classList.contains('hk-side-row')"):
            break
        assert book.page.evaluate(VISIBLE), book.page.evaluate(FOCUSED)
        keyboard.press("Tab")
    keyboard.press("Enter")
    expect(side(book.page).locator(".hk-side-title")).to_be_focused()
    book.shot("54-keys-side")
    keyboard.press("Escape")
    assert book.page.evaluate("document.activeElement.classList.contains('hk-side-row')")
    assert book.problems == []


@pytest.mark.requirement("FACE-9")
@pytest.mark.parametrize("width", [420, 700, 1280])
def test_the_button_covers_nothing_of_the_traceback(notebook: Open, width: int) -> None:
    long = "'" + "x" * 300 + "' + 1"
    book = notebook(f"covers_{width}", long, "def :", "1 / 0", width=width)
    for number in range(3):
        book.run(number)
        book.shot(f"55-covers-{width}-{number}", book.cell(number))
        covered = fix_button(book, number).evaluate(
            """(button) => {
              const own = button.getBoundingClientRect();
              const walker = document.createTreeWalker(button.parentElement, NodeFilter.SHOW_TEXT);
              for (let node = walker.nextNode(); node; node = walker.nextNode()) {
                if (button.contains(node)) continue;
                const range = document.createRange();
                range.selectNodeContents(node);
                for (const box of range.getClientRects())
                  if (box.right > own.left && box.left < own.right && box.bottom > own.top && box.top < own.bottom) return node.data;
              }
              return "";
            }"""
        )
        assert covered.strip() == "", covered


@pytest.mark.requirement("FACE-9", "FACE-10")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_card_and_fix_work_with_the_extension_disabled(disabled: None, notebook: Open, view: str) -> None:
    book = notebook(
        f"off_{len(view)}", LOAD, "%config HealkitMagics.explain = 'why'", "1 / 0", ORDERS, SUM, view=view
    )
    said: list[str] = []
    book.page.on(
        "console", lambda told: said.append(f"{told.text} {told.location}") if told.type == "error" else None
    )
    book.page.on("response", lambda answer: said.append(answer.url) if answer.status >= 400 else None)
    book.page.reload()
    book.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=SLOW_MS)
    book.ready()
    assert book.page.evaluate("globalThis.__healkitLab === undefined")
    for number in range(3):
        book.run(number)
    card: Locator = book.cell(2).locator('[data-mime-type="text/html"]')
    expect(card).to_contain_text("ZeroDivisionError", timeout=SLOW_MS)
    book.cell(1).locator(".jp-InputArea-editor").click()
    book.page.keyboard.press("Control+a")
    book.page.keyboard.type("%config HealkitMagics.explain = 'fix'")
    for number in (1, 3, 4):
        book.run(number)
    press(book.panel(4), "✚ Fix")
    press(book.panel(4), "✓ Apply")
    expect(book.panel(4)).to_contain_text("The fixed text is in", timeout=SLOW_MS)
    book.run(4)
    expect(book.cell(4)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    expect(book.page.locator(".hk-lab-fix, .hk-lab-card, .hk-lab-status, #healkit-side-panel")).to_have_count(
        0
    )
    ours = [one for one in (*said, *book.problems) if "healkit" in one.lower() or "anywidget" in one.lower()]
    assert ours == []
