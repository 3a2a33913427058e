"""Extension, with the side panel and the kernel's fixes."""

from __future__ import annotations

import time

import pytest
from browser_lab import LAB, NOTEBOOK_7, SLOW_MS, WHOLE_LAB
from browser_panels import LOAD, Open, broken
from playwright.sync_api import expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ORDERS = 'import pandas as pd\norders = pd.DataFrame({"revenue": [1.5, 2.5], "region": ["a", "b"]})'


@pytest.mark.requirement("FACE-9", "FACE-12")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_from_the_error_to_a_green_run_in_two_clicks(notebook: Open, view: str) -> None:
    book = notebook(f"two_{len(view)}", LOAD, ORDERS, "orders.groupby('region')['revnue'].sum()", view=view)
    for number in range(3):
        book.run(number)
    book.panel(2)
    began = time.perf_counter()
    book.cell(2).get_by_role("button", name="Fix", exact=True).first.click()
    put = book.cell(2).get_by_role("button", name="Apply and run")
    put.wait_for(timeout=SLOW_MS)
    print(f"proposal after {time.perf_counter() - began:.2f} s")
    book.shot(f"44-proposal-{len(view)}")
    put.click()
    expect(book.cell(2)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    expect(book.page.locator(".hk-lab-fix")).to_have_count(0)


@pytest.mark.requirement("FACE-9")
def test_the_side_panel_and_the_status_bar_count_what_waits(notebook: Open) -> None:
    cells = [LOAD, broken("mean"), "%run_tool mean values=[1]"]
    book = notebook("side", *cells, view=WHOLE_LAB, width=1500)
    for number in range(3):
        book.run(number)
    book.page.reload()
    book.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=SLOW_MS)
    item = book.page.locator(".hk-lab-status")
    expect(item).to_be_visible(timeout=SLOW_MS)
    print("STATUS", item.text_content(), item.get_attribute("title"))
    item.click()
    panel = book.page.locator("#healkit-side-panel")
    expect(panel).to_contain_text("mean", timeout=SLOW_MS)
    book.page.wait_for_timeout(1000)
    book.shot("45-side")
    panel.get_by_role("tab", name="Tools").click()
    expect(panel).to_contain_text("mean", timeout=SLOW_MS)
    book.shot("46-side-tools")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        book.choose_theme(theme)
        book.page.wait_for_timeout(500)
        if "Dark" in theme:
            book.shot("47-side-dark")
