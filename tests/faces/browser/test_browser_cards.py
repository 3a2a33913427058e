"""Static cards in JupyterLab: both themes, narrow windows."""

from __future__ import annotations

import pytest
from browser_lab import CONTRAST, LIGHTNESS, SLOW_MS, Notebook
from browser_panels import CONTRAST_LEAST, LOAD, Open, broken
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

THEMES = (("JupyterLab Dark", "false"), ("JupyterLab Light", "true"))
#: The first card of an output.
CARD = ".jp-RenderedHTMLCommon > div"
#: On how many lines an element's text stands.
LINES = """(element, word) => {
  const range = document.createRange();
  const text = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode();
  const start = text.data.indexOf(word);
  range.setStart(text, start);
  range.setEnd(text, start + word.length);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
}"""


def in_theme(book: Notebook, name: str, light: str) -> None:
    book.choose_theme(name)
    expect(book.page.locator("body")).to_have_attribute("data-jp-theme-light", light, timeout=SLOW_MS)


def cards(book: Notebook) -> list[Locator]:
    found = book.page.locator(CARD)
    expect(found.first).to_be_visible(timeout=SLOW_MS)
    return found.all()


@pytest.mark.requirement("FACE-4")
def test_cards_take_the_pages_theme_and_stay_readable_in_a_narrow_window(notebook: Open) -> None:
    name = "averaged"
    cells = (
        f"%run_tool {name} values=[2,4,9]",
        "%executions",
        f"%vault show {name}",
        f"%vault history {name}",
    )
    book = notebook("cards", f"%env HEALKIT_PANELS=0\n{LOAD}", broken(name), *cells, width=600)
    for number in range(len(cells) + 2):
        book.run(number)
    listed = book.cell(3).locator(CARD)
    for width in (600, 400):
        book.page.set_viewport_size({"width": width, "height": 900})
        for card in cards(book):
            place = card.bounding_box()
            assert place is not None
            assert place["x"] + place["width"] <= width
        for words in (name, "FAILURE", "namespaces"):  # no word is broken
            assert listed.get_by_text(words).last.evaluate(LINES, words) == 1, (words, width)
    assert listed.locator("div", has=book.page.locator("table")).last.evaluate(
        "(area) => { area.scrollLeft = 9999; return area.scrollLeft > 0 }"
    )
    for theme, light in THEMES:
        in_theme(book, theme, light)
        for card in cards(book):
            assert (card.evaluate(LIGHTNESS) > 200) == (light == "true"), theme
            worst = card.evaluate(CONTRAST)
            assert worst["ratio"] >= CONTRAST_LEAST, (theme, worst)
        book.shot(f"12-cards-{light}")
    assert book.problems == []
