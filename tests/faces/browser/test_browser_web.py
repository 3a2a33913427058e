"""Stand-alone page, used as a person does."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser_lab import SLOW_MS
from jupyter_server_process import Jupyter
from page_samples import HOSTILE, PRICES, fill
from playwright.sync_api import BrowserContext, Locator, Page, ViewportSize, expect

from healkit import Healkit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TABS = ("Failures", "Executions", "Tools", "Runs", "Decisions", "Requests")
WIDE, NARROW = ViewportSize(width=1280, height=800), ViewportSize(width=300, height=700)


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """Start a Jupyter server beside a database with something of all."""
    folder = tmp_path_factory.mktemp("page")
    fill(folder / "healkit.db")
    server = Jupyter(folder)
    yield server
    server.stop()


@pytest.fixture
def page(jupyter: Jupyter, browser: BrowserContext) -> Iterator[Page]:
    """Log in and open the page; nothing may be said against it on the browser's console."""
    opened = browser.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.set_viewport_size(WIDE)
    opened.goto(f"{jupyter.url}/healkit/?token={jupyter.token}")
    rows(opened).first.wait_for(timeout=SLOW_MS)
    assert jupyter.token not in opened.url
    yield opened
    opened.close()
    browser.clear_cookies()
    assert [
        text for text in said if "400 (Bad Request)" not in text
    ] == []  # which is what a wrong filter gets


def rows(page: Page) -> Locator:
    return page.get_by_role("tabpanel").get_by_role("listitem").get_by_role("button")


def choose(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()
    expect(page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
    rows(page).first.wait_for(timeout=SLOW_MS)


def detail(page: Page) -> Locator:
    return page.get_by_role("region", name="in full")


def faults(page: Page, axe: str) -> list[str]:
    """Return what axe-core calls serious on the page; its policy lets no other script in but this way."""
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{fault['impact']} {fault['id']}: {html.unescape(node['html'][:200])}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


def test_each_list_opens_to_one_thing_in_full(page: Page) -> None:
    expect(rows(page).filter(has_text="total")).to_contain_text("KeyError: 'apple'")
    expect(rows(page).filter(has_text="mean")).to_contain_text("v2 passes")
    page.get_by_label("which failures").select_option("unresolved")
    expect(rows(page).filter(has_text="mean")).to_have_count(0)
    rows(page).filter(has_text="total").click()
    expect(detail(page)).to_contain_text("has no key 'apple'")
    for words in ("Fix", "Edit", "Re-run", "Look inside"):  # each would need a kernel
        expect(page.get_by_role("button", name=words)).to_have_count(0)
    detail(page).get_by_role("button", name="2 executions").click()
    expect(page.get_by_role("tab", name="Executions")).to_be_focused()
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name=re.compile("only fingerprint")).click()
    expect(rows(page).filter(has_text="greet").first).to_be_visible()

    choose(page, "Tools")
    rows(page).filter(has_text="mean v2").click()
    expect(detail(page).locator(".cm-content")).to_contain_text("len(values)")
    detail(page).get_by_role("button", name="v1", exact=False).click()
    detail(page).get_by_role("button", name="Compare with it").click()
    expect(detail(page).locator(".cm-deletedChunk")).to_contain_text("len(value)")
    expect(detail(page).get_by_role("button", name=re.compile("Go back to it"))).to_have_count(0)

    choose(page, "Runs")
    rows(page).filter(has_text="heal · mean").click()
    expect(detail(page)).to_contain_text("How mean v1 was healed, step by step")
    detail(page).get_by_role("button", name="last step").click()
    expect(detail(page).get_by_role("region", name="what happened")).to_contain_text("The healing ends")

    choose(page, "Decisions")
    rows(page).first.click()
    expect(detail(page).get_by_role("region", name="Audit")).to_contain_text("corrected")
    expect(detail(page).get_by_role("button", name="Export")).to_have_count(0)

    choose(page, "Requests")
    rows(page).first.click()
    expect(detail(page)).to_contain_text("%healkit requests accept 1")
    expect(detail(page).locator(".cm-content")).to_contain_text("sum(prices.values())")
    detail(page).get_by_role("button", name="total v1").click()
    expect(page.get_by_role("tab", name="Tools")).to_have_attribute("aria-selected", "true")
    expect(detail(page).get_by_role("heading", name="total")).to_be_focused()


def test_a_search_by_tool_by_words_and_by_status(page: Page) -> None:
    choose(page, "Executions")
    search = page.get_by_label(re.compile("^Search"))
    search.fill("total")
    expect(rows(page)).to_have_count(2)
    search.fill("pear")  # no tool's name, so words of a traceback
    expect(rows(page).first).to_contain_text("total v1")
    search.fill("")
    page.get_by_label("status").select_option("REFUSED")
    expect(rows(page)).to_have_count(1)
    expect(rows(page).first).to_contain_text("'name' must be string")
    page.get_by_label("status").select_option("")
    page.get_by_text("More filters").click()
    since = page.get_by_label("since, such as 2h, 3d or a date")
    since.fill("next week")
    expect(page.get_by_role("alert")).to_contain_text("next week")
    since.fill("2h")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(rows(page).first).to_be_visible()


def test_everything_is_reached_by_keyboard(page: Page) -> None:
    tabs = page.get_by_role("tab")
    tabs.first.focus()
    for name in (*TABS[1:], TABS[0]):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
        expect(page.get_by_role("tabpanel")).to_have_accessible_name(re.compile(f"^{name}"))
    page.keyboard.press("End")
    expect(tabs.last).to_be_focused()
    page.keyboard.press("Home")
    rows(page).first.wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("which failures")).to_be_focused()
    page.keyboard.press("Tab")
    expect(rows(page).first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(rows(page).nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(detail(page).get_by_role("heading", level=3).first).to_be_focused()
    page.keyboard.press("Escape")
    expect(rows(page).nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(rows(page).first).to_be_focused()


def test_what_happens_elsewhere_comes_in_by_itself(page: Page, jupyter: Jupyter) -> None:
    rows(page).first.focus()
    focused = rows(page).first.get_attribute("data-key")
    with Healkit(jupyter.folder / "healkit.db") as kernel:
        kernel.vault.add("newcomer", "def newcomer():\n    return [][0]\n")
        kernel.execute("newcomer")
        expect(rows(page).filter(has_text="newcomer")).to_contain_text("IndexError", timeout=SLOW_MS)
        expect(page.locator(f'[data-key="{focused}"]')).to_be_focused()
        badge = page.get_by_role("tab", name="Requests")
        expect(badge).to_contain_text("1 waits")
        added = kernel.requests.add("total", PRICES.replace("+", "-"))
        expect(badge).to_contain_text("2 wait", timeout=SLOW_MS)
        expect(page).to_have_title("(2) healkit")
        kernel.requests.decline(added.id, "no")
        expect(badge).to_contain_text("1 waits", timeout=SLOW_MS)


def test_the_address_leads_back_to_what_was_open(page: Page) -> None:
    choose(page, "Executions")
    rows(page).filter(has_text="greet").nth(1).click()
    expect(page).to_have_url(re.compile(r"#executions/\d+$"))
    title = detail(page).get_by_role("heading", level=3).first.inner_text()
    page.reload()
    expect(detail(page).get_by_role("heading", level=3).first).to_have_text(title, timeout=SLOW_MS)
    page.go_back()
    expect(page).to_have_url(re.compile("#executions$"))
    expect(detail(page)).to_contain_text("Choose a row")


def test_text_of_tools_is_never_markup(page: Page) -> None:
    for name in TABS:
        choose(page, name)
        assert page.locator("main img, main b:text-is('bold')").count() == 0
        for number in range(min(rows(page).count(), 6)):
            rows(page).nth(number).click()
            expect(detail(page).get_by_role("heading", level=3).first).to_be_focused()
            assert page.locator("main img, main b:text-is('bold')").count() == 0
            page.keyboard.press("Escape")
    choose(page, "Tools")
    expect(rows(page).filter(has_text="greet")).to_contain_text(HOSTILE)
    assert "owned" not in page.title()


@pytest.mark.parametrize("look", ["light", "dark", "high contrast"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_no_serious_fault_of_accessibility(page: Page, axe: str, look: str, size: ViewportSize) -> None:
    page.set_viewport_size(size)
    if look == "high contrast":
        page.emulate_media(forced_colors="active")
    else:
        page.emulate_media(color_scheme=look)
    for name in TABS:
        choose(page, name)
        assert faults(page, axe) == [], name
        rows(page).first.click()
        expect(detail(page).get_by_role("heading", level=3).first).to_be_focused()
        expect(page.locator(".hk-side-view")).to_contain_text(re.compile(".{20}", re.DOTALL))
        assert faults(page, axe) == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"
        page.keyboard.press("Escape")
    page.emulate_media(color_scheme=None, forced_colors=None)


def test_it_says_that_the_server_is_gone_and_goes_on_once_it_is_back(
    tmp_path: Path, browser: BrowserContext
) -> None:
    fill(tmp_path / "healkit.db")
    first = Jupyter(tmp_path)
    try:
        page = browser.new_page()
        page.goto(f"{first.url}/healkit/?token={first.token}")
        rows(page).first.wait_for(timeout=SLOW_MS)
    finally:
        first.stop()
    gone = page.get_by_text("Jupyter's server does not answer.")
    expect(gone).to_be_visible(timeout=SLOW_MS)
    expect(rows(page).first).to_be_visible()
    again = Jupyter(tmp_path, port=httpx.URL(first.url).port or 0, token=first.token)
    try:
        expect(gone).to_have_count(0, timeout=SLOW_MS)
        rows(page).first.click()
        expect(detail(page)).to_contain_text("has no key 'apple'", timeout=SLOW_MS)
    finally:
        again.stop()
    page.close()
    browser.clear_cookies()
