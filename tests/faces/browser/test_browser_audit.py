"""Audit panel below a decision's card, used by keyboard."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from browser_lab import CONTRAST, LIGHTNESS, SLOW_MS, Lab, Notebook
from browser_panels import CONTRAST_LEAST, Open
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FILL = '''
import pandas as pd
from healkit import Healkit
hk = Healkit()
if "pick" not in hk.vault.names():
    hk.vault.add("pick", """
import pandas as pd

def pick(df: pd.DataFrame, column: str, values: list):
    return df[df[column].isin(values)]
""")
stocks = pd.DataFrame({"ticker": ["AAPL", "AMZN", "META"], "price": [210.5, 180.0, 600.25]})

def step(view, *wanted):
    return {
        "type": "execute_data_op", "tool": "pick", "viewName": view,
        "params": {"df": "stocks", "column": "ticker", "values": list(wanted)},
        "intended": {"rows": len(wanted), "entities": {"ticker": list(wanted)}},
    }

plan = [step("chosen", "AAPL", "FB"), step("other", "AAPL", "Zurich Insurance"),
        {"type": "finalize", "finalViewName": "chosen"}]
decision = hk.decide("What do Apple and Facebook cost?", data={"stocks": stocks}, tools=["pick"], chooser=plan,
                     aliases={"META": ["FB", "Facebook"]})
'''
PANEL = "hk.audit_panel(decision)"
#: The cards of a decision and of a failure, as tests/core/rendering/test_golden.py writes them.
GOLDEN, CARDS = (
    Path(__file__).parents[2] / "core" / "rendering" / "golden",
    ("audited-corrected", "execution-explained"),
)
#: Hue in degrees of a colour as the browser writes it.
_HUE_OF = """
  const hue = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number);
    const top = Math.max(r, g, b), spread = top - Math.min(r, g, b);
    if (!spread) return null;
    const sixth = top === r ? ((g - b) / spread + 6) % 6 : top === g ? (b - r) / spread + 2 : (r - g) / spread + 4;
    return Math.round(sixth * 60) % 360;
  };
"""
#: Hues of a row's background and of the words of its state.
COLOURS = f"""
(element) => {{
  {_HUE_OF}
  const words = element.querySelector("b");
  return {{ row: hue(getComputedStyle(element).backgroundColor), words: hue(getComputedStyle(words).color) }};
}}
"""
#: Hue of an element's text.
HUE = f"(element) => {{ {_HUE_OF} return hue(getComputedStyle(element).color); }}"
#: Pane → least and greatest hue of its heading: green, blue, purple.
HEADINGS = {"Audit": (130, 165), "Data": (200, 225), "Analysis": (260, 290)}


def opened(notebook: Open, name: str, **window: int) -> tuple[Notebook, Locator]:
    """Open a decision's audit panel, below the second cell."""
    book = notebook(name, FILL, PANEL, **window)
    book.run(0)
    book.run(1)
    panel = book.panel(1)
    panel.get_by_role("region", name="Audit").wait_for(timeout=SLOW_MS)
    return book, panel


def faults(book: Notebook, axe: str) -> list[str]:
    """Return what axe-core calls serious in the panels."""
    book.page.evaluate(axe)
    found: dict[str, Any] = book.page.evaluate("axe.run('.hk', {resultTypes: ['violations']})")
    return [
        f"{fault['impact']} {fault['id']}: {html.unescape(node['html'][:200])}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


@pytest.mark.requirement("DECIDE-6", "FACE-4")
def test_a_step_is_opened_by_keyboard_corrections_are_amber_and_the_data_is_exported(
    notebook: Open, lab: Lab, axe: str
) -> None:
    book, panel = opened(notebook, "audited", height=1700)
    keyboard = book.page.keyboard
    for name, (least, greatest) in HEADINGS.items():
        assert least <= panel.get_by_role("heading", name=name).evaluate(HUE) <= greatest, name
    corrected = panel.locator("details", has_text="↻ corrected")
    summary = corrected.locator("summary")
    held = panel.get_by_label("details of step 4")
    expect(held).to_be_hidden()
    panel.locator("details").nth(2).locator("summary").focus()
    keyboard.press("Tab")
    expect(summary).to_be_focused()
    keyboard.press("Enter")
    expect(held).to_contain_text('"values": ["AAPL", "META"]')
    expect(held).to_contain_text('actual      {"asIntended": true, "rows": 2,')
    book.shot("20-audit-panel", panel)
    amber, red = (
        corrected.evaluate(COLOURS),
        panel.locator("details", has_text="✗ correction failed").evaluate(COLOURS),
    )
    assert 30 <= amber["row"] <= 50
    assert 30 <= amber["words"] <= 50
    assert red["row"] <= 12
    assert red["words"] <= 12
    file = panel.get_by_label("export file, .csv or .parquet")
    expect(file).to_have_value("chosen.csv")
    file.focus()
    keyboard.press("Enter")
    expect(panel).to_contain_text("✓ Written: 2 rows × 2 columns to")
    assert list(pd.read_csv(lab.folder / "chosen.csv")["ticker"]) == ["AAPL", "META"]
    keyboard.press("Enter")
    expect(panel.get_by_role("alert")).to_contain_text("Cannot write 'chosen.csv'")
    expect(panel).to_contain_text("⚡ AI analysis, may be wrong, not deterministic")
    assert book.cells() == 2
    card = book.cell(1).locator(".jp-OutputArea-child").first
    book.page.set_viewport_size({"width": 600, "height": 1600})
    panel.get_by_role("button", name="Open all").click()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        book.choose_theme(theme)
        expect(panel).to_have_attribute("data-theme", theme.rpartition(" ")[2].lower())
        for of in (panel, card):
            worst = of.evaluate(CONTRAST)
            assert worst["ratio"] >= CONTRAST_LEAST, (theme, worst)
            assert of.evaluate("(element) => element.scrollWidth <= element.clientWidth + 1")
        book.shot(f"21-audit-narrow-{theme[-5:].strip().lower()}", panel)
        assert faults(book, axe) == []
    book.kill_kernel()
    expect(card).to_contain_text("↻ corrected")
    book.save()
    book.page.reload()
    expect(card.locator("details").nth(3)).to_contain_text("self_correction", timeout=SLOW_MS)
    assert book.problems == []


@pytest.mark.requirement("DECIDE-6", "FACE-4")
def test_in_a_notebook_that_is_not_trusted_the_three_panes_keep_colours_icons_and_steps(
    notebook: Open,
) -> None:
    """Red, green and blue were lost there, with every card: JupyterLab kept `var(--hk-red)` without its definition."""
    book = notebook("not_trusted", "0")
    pages = [(GOLDEN / f"{name}.html.txt").read_text().replace("⏎\n", "").rstrip() for name in CARDS]
    outputs = [
        nbformat.v4.new_output("display_data", {"text/html": page, "text/plain": "x"}) for page in pages
    ]
    cell = nbformat.v4.new_code_cell("0", outputs=outputs, execution_count=1)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(
        nbformat.v4.new_notebook(cells=[cell], metadata=kernel), book.path
    )  # as if it had been sent
    book.open()
    both = book.page.locator(".jp-RenderedHTMLCommon > div")
    expect(both.nth(1)).to_be_visible(timeout=SLOW_MS)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        book.choose_theme(theme)
        for shown in both.all():
            assert shown.evaluate(LIGHTNESS) > 200, theme
            worst = shown.evaluate(CONTRAST)
            assert worst["ratio"] >= CONTRAST_LEAST, (theme, worst)
    expect(both.nth(1).locator("mark").first).to_be_visible()
    card = both.first
    drawn = card.locator("img").evaluate_all(
        "(all) => all.map((image) => [image.alt, image.naturalWidth > 0])"
    )
    assert drawn == [["🛡", True], ["🗄", True]]
    step = card.locator("details", has_text="↻ corrected")
    step.locator("summary").focus()
    book.page.keyboard.press("Enter")
    expect(step.locator("pre")).to_be_visible()
    assert 30 <= step.evaluate(COLOURS)["row"] <= 50
    failed = card.locator("details", has_text="✗ correction failed").evaluate(COLOURS)
    assert {failed["row"] // 13, failed["words"] // 13} == {0}
    for name, (least, greatest) in HEADINGS.items():
        assert least <= card.locator("b").filter(has_text=name).first.evaluate(HUE) <= greatest, name
    book.shot("22-audit-card-not-trusted", card)


@pytest.mark.requirement("DECIDE-1", "FACE-4")
def test_a_person_chooses_in_a_panel_by_keyboard_and_sees_the_result_there(notebook: Open, axe: str) -> None:
    call = 'panel = hk.decide_panel("What does Meta cost?", {"stocks": stocks}, tools=["pick"])\npanel'
    book = notebook("chosen", FILL, call, height=1400)
    book.run(0)
    book.run(1)
    panel, keyboard = book.panel(1), book.page.keyboard
    told = panel.get_by_label("what a model would get")
    expect(told).to_contain_text('"question": "What does Meta cost?"', timeout=SLOW_MS)
    expect(told).not_to_contain_text("META")
    book.shot("23-decide-panel", panel)
    panel.get_by_label("params, as JSON").fill("{")
    panel.get_by_label("viewName, the name of the new view").fill("of_meta")
    panel.get_by_role("button", name="Choose").click()
    expect(panel.get_by_role("alert")).to_contain_text("params: not JSON")
    expect(panel.get_by_label("params, as JSON")).to_be_focused()
    given = '{"df": "stock", "column": "ticker", "values": ["META"]}'
    panel.get_by_label("params, as JSON").fill(given)
    panel.get_by_role("button", name="Choose").focus()
    keyboard.press("Enter")
    expect(panel.get_by_role("alert")).to_contain_text("'df' must be the name of a view: stocks.")
    expect(panel.get_by_label("params, as JSON")).to_have_value(given)  # to be corrected
    panel.get_by_label("params, as JSON").fill(given.replace("stock", "stocks"))
    book.page.set_viewport_size({"width": 600, "height": 1400})
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        book.choose_theme(theme)
        expect(panel).to_have_attribute("data-theme", theme.rpartition(" ")[2].lower())
        assert panel.evaluate(CONTRAST)["ratio"] >= CONTRAST_LEAST
        assert panel.evaluate("(element) => element.scrollWidth <= element.clientWidth + 1")
        book.shot(f"23-decide-panel-narrow-{theme[-5:].strip().lower()}", panel)
    assert faults(book, axe) == []
    panel.get_by_role("button", name="Choose").click()
    final = panel.get_by_label("finalViewName")
    expect(final).to_have_value("of_meta", timeout=SLOW_MS)
    expect(panel.get_by_label("type of the choice")).to_be_focused()
    book.save()
    book.page.reload()  # the panel is as it was: the kernel remembers
    book.ready()
    expect(panel.get_by_label("what a model would get")).to_contain_text("of_meta", timeout=SLOW_MS)
    panel.get_by_label("type of the choice").select_option("finalize")
    panel.get_by_role("button", name="Choose").click()
    expect(panel.get_by_role("region", name="Data")).to_contain_text("'META'", timeout=SLOW_MS)
    card = book.cell(1).locator(".jp-OutputArea-child").first
    expect(card).to_contain_text("Decision: finalized")
    book.shot("24-decide-panel-ended", panel)
    assert book.problems == []
