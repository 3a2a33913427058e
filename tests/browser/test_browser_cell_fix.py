"""Failing cell of the user's own, fixed in a browser."""

from __future__ import annotations

import pytest
from browser_lab import LAB, NOTEBOOK_7, SLOW_MS
from browser_panels import LOAD, Open, press
from playwright.sync_api import expect

pytestmark = pytest.mark.timeout(300)

ORDERS = 'import pandas as pd\norders = pd.DataFrame({"revenue": [1.5, 2.5], "region": ["a", "b"]})'
#: Height of a card until something in it is unfolded, in CSS pixels.
CARD_MAX_PX = 160


@pytest.mark.slow
@pytest.mark.requirement("FACE-10", "FACE-12")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_a_failing_cell_is_fixed_where_it_stands_in_two_clicks(notebook: Open, view: str) -> None:
    book = notebook(
        f"fixed_{len(view)}", LOAD, ORDERS, "orders.groupby('region')['revnue'].sum()", width=1280, view=view
    )
    for number in range(3):
        book.run(number)
    cell, panel = book.cell(2), book.panel(2)
    expect(panel).to_contain_text(
        "has no column 'revnue'. The most similar one is 'revenue'.", timeout=SLOW_MS
    )
    error, card = (cell.locator(".jp-OutputArea-child").nth(place) for place in (0, 1))
    expect(error.get_by_text("library frame")).to_be_visible()
    expect(error.get_by_text("site-packages").first).to_be_hidden()
    expect(card).to_be_hidden()
    assert panel.bounding_box()["height"] <= CARD_MAX_PX
    book.shot(f"31-cell-card-{len(view)}")
    press(panel, "✚ Fix")
    press(panel, "Put it into In [3]")
    expect(panel).to_contain_text("✓ The fixed text is in In [3]: run it.")
    book.shot(f"32-cell-fixed-{len(view)}", cell)
    book.run(2)
    expect(book.cell(2)).to_contain_text("Name: revenue")
    saved = book.save()["cells"][2]
    assert "".join(saved["source"]) == "orders.groupby('region')['revenue'].sum()"
