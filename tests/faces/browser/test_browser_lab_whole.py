"""Extension, with the side panel and the kernel's fixes."""

from __future__ import annotations

import re

import pytest
from browser_extension import ORDERS, READY, SUM, TYPO, fix_button, of_extension, open_side, row, side, tab
from browser_lab import ACTIVATE, LAB, NOTEBOOK_7, OPEN, SLOW_MS, WHOLE_LAB, Lab, Notebook
from browser_panels import LOAD, Open, broken, press
from playwright.sync_api import BrowserContext, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.requirement("FACE-9", "FACE-12")
@pytest.mark.parametrize("view", [LAB, NOTEBOOK_7])
def test_from_the_error_to_a_green_run_in_two_clicks(notebook: Open, view: str) -> None:
    book = notebook(f"two_{len(view)}", LOAD, ORDERS, SUM, view=view)
    for number in range(3):
        book.run(number)
    fix_button(book, 2).click()
    put = book.cell(2).get_by_role("button", name="Apply and run")
    put.wait_for(timeout=SLOW_MS)
    book.shot(f"44-proposal-{len(view)}")
    put.click()
    expect(book.cell(2)).to_contain_text("Name: revenue", timeout=SLOW_MS)
    expect(book.page.locator(".hk-lab-fix")).to_have_count(0)
    assert not of_extension(book)


@pytest.mark.requirement("FACE-9")
def test_a_patch_that_waits_is_counted_on_the_icon_and_in_the_status_bar_until_it_is_decided(
    notebook: Open,
) -> None:
    cells = [LOAD, f"%%tool waits\n{TYPO}".replace("NAME", "waits"), "%run_tool waits values=[1,2]", "1"]
    book = notebook("waits", *cells, "%healkit requests accept 1", view=WHOLE_LAB, width=1500)
    page, icon = book.page, book.page.locator('.jp-SideBar [data-id="healkit-side-panel"]')
    for number in range(3):
        book.run(number)
    item = page.locator(".hk-lab-status")
    expect(item).to_have_text(re.compile(r"^healkit: [a-z]+$"), timeout=SLOW_MS)
    expect(icon).not_to_have_attribute("data-hk-waiting", "1")
    fix_button(book, 2).click()
    press(book.panel(2), "Later")
    expect(book.panel(2)).to_contain_text("waiting for your approval", timeout=SLOW_MS)
    book.run(3)  # after a run the page asks again
    expect(item).to_have_text(re.compile(r" · 1 request$"), timeout=SLOW_MS)
    expect(icon).to_have_attribute("data-hk-waiting", "1")
    expect(icon).to_have_attribute("title", re.compile("1 request is waiting"))
    item.click()
    expect(tab(page, "Requests")).to_contain_text("1 waits", timeout=SLOW_MS)
    tab(page, "Requests").click()
    row(page, "waits").click()
    expect(side(page)).to_contain_text("%healkit requests accept 1", timeout=SLOW_MS)
    book.shot("45-side-request")
    book.run(4)
    expect(item).not_to_contain_text("request", timeout=SLOW_MS)
    expect(icon).not_to_have_attribute("data-hk-waiting", "1")
    expect(row(page, "accepted")).to_have_count(1, timeout=SLOW_MS)
    assert book.problems == []


@pytest.mark.requirement("FACE-9")
def test_the_side_panel_has_the_runs_of_two_notebooks_as_they_happen(notebook: Open) -> None:
    book = notebook(
        "live_one", LOAD, broken("quota"), "%run_tool quota values=[1]", view=WHOLE_LAB, width=1500
    )
    page = book.page
    open_side(page)
    for number in range(3):
        book.run(number)
    expect(row(page, "quota")).to_have_count(1, timeout=SLOW_MS)
    path = book.path.with_name("live_two.ipynb")
    path.write_text(book.path.read_text().replace("quota", "bonus"))
    session = {"type": "notebook", "kernel": {"name": "python3"}, "path": path.name, "name": path.name}
    book.lab.api("POST", "api/sessions", session)
    page.evaluate(OPEN, path.name)
    page.wait_for_function(READY, arg=path.name, timeout=SLOW_MS)
    page.evaluate(ACTIVATE, path.name)
    page.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells'); }")
    expect(row(page, "bonus")).to_have_count(1, timeout=SLOW_MS)
    expect(row(page, "quota")).to_have_count(1)
    page.evaluate(ACTIVATE, book.path.name)
    book.run(2)
    expect(row(page, "quota")).to_contain_text("2×", timeout=SLOW_MS)
    tab(page, "Executions").click()
    expect(row(page, "bonus")).to_have_count(1)
    expect(row(page, "quota")).to_have_count(2)
    book.shot("46-side-two")
    assert book.problems == []


@pytest.mark.requirement("FACE-9")
def test_the_side_panel_needs_no_kernel(
    lab: Lab, kernel: object, browser: BrowserContext, notebook: Open
) -> None:
    book: Notebook = notebook("cold", LOAD, broken("cold"), "%run_tool cold values=[1]")
    for number in range(3):
        book.run(number)
    for each in lab.kernels():
        lab.api("DELETE", f"api/kernels/{each}")
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{lab.url}/lab?reset&token={lab.token}")
    page.locator("#jp-main-dock-panel").wait_for(timeout=SLOW_MS)
    page.wait_for_function("() => jupyterapp.restored.then(() => true)")
    open_side(page)
    row(page, "cold").click()
    expect(side(page)).to_contain_text("division by zero", timeout=SLOW_MS)
    tab(page, "Tools").click()
    row(page, "cold").click()
    expect(side(page)).to_contain_text("total / 0", timeout=SLOW_MS)
    assert lab.kernels() == set()
    assert problems == []
