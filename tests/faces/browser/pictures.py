"""Pictures of README and docs, taken from the real thing.

`make pictures` runs this file; plain `pytest` does not collect it. It uses a real JupyterLab with the real extension as a
person does. Only times differ from run to run. `benchmarks/flame.py` makes `docs/images/host_flame.svg`.
"""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser_lab import LAB, ROOT, SLOW_MS, WHOLE_LAB, Lab, Notebook
from browser_panels import LOAD, Open, failing, fix, open_editor, outcome, press
from PIL import Image, ImageDraw
from playwright.sync_api import BrowserContext, Locator, Page, expect, sync_playwright
from test_browser_audit import FILL as DECISION
from test_browser_audit import PANEL as DECISION_PANEL
from test_browser_healing import FILL as FEE
from test_browser_timeline import headline
from test_browser_timeline import opened as timeline_opened

from healkit import Healkit

pytestmark = pytest.mark.timeout(300)

IMAGES = ROOT / "docs" / "images"
#: Pixels of a picture for each CSS pixel: sharp on the screens that people have.
SCALE = 2
#: Narrower than a test's window: a page of text shows a picture at about this width, and its letters stay readable.
WIDTH, HEIGHT = 980, 720
GIVEN_S = 0.08
ORDERS = """\
import pandas as pd
orders = pd.DataFrame({"region": ["north", "south", "north"], "revenue": [120.0, 80.5, 42.0]})"""
SUM = "orders.groupby('region')['revnue'].sum()"

MEAN = '''\
def mean(values: list) -> float:
    """Mean of the values."""
    return sum(values) / len(value)
'''
BASKET = '''\
def basket_total(prices: dict) -> float:
    """Add up the prices of a basket."""
    return prices["apple"] + prices["pear"]
'''
GREET = '''\
def greet(name: str) -> str:
    """Greet a person by name."""
    return "Hello " + name
'''
RATIO = '''\
def ratio(wins: int, games: int) -> float:
    """Share of games won."""
    return round(wins / games, 2)
'''
SLUG = '''\
def slug(title: str) -> str:
    """Name of a page for a title."""
    words = title.lower().split()
    return words[0] + "".join("-" + word for word in words[1:])
'''


# In the place of that of conftest.py: the same browser, with twice as many pixels.
@pytest.fixture(scope="module")
def browser(profile: Path) -> Iterator[BrowserContext]:
    """Headless Chromium with sharp letters."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found is not None, "Chromium is not installed: apt-get install chromium"
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage"]
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=found, args=flags, device_scale_factor=SCALE, reduced_motion="reduce"
        )
        yield context
        context.close()


def seen(page: Page, of: Locator | None = None) -> Image.Image:
    """Return what is on the page, or in that element, as it is once fonts are there and no pointer is over it."""
    page.evaluate("() => document.fonts.ready.then(() => null)")
    return Image.open(io.BytesIO((of or page).screenshot(animations="disabled", caret="hide"))).convert("RGB")


def keep(name: str, picture: Image.Image) -> None:
    """Write it to docs/images, in its 256 most frequent colours, each exact: what is lost is in the edges of letters.

    Pillow's own quantize() moves white, which is most of a page.
    """
    pixels = np.asarray(picture).reshape(-1, 3).astype(np.int32)
    colours, which, often = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    kept = colours[np.argsort(-often)[:256]]
    nearest = ((colours[:, None, :] - kept[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
    few = Image.fromarray(nearest[which.ravel()].astype(np.uint8).reshape(picture.height, picture.width))
    few.putpalette(kept.astype(np.uint8).tobytes())
    few.save(IMAGES / f"{name}.png", optimize=True)


def away(page: Page) -> None:
    """Take the pointer off everything that lights up under it."""
    page.mouse.move(2, 2)


def failed(notebook: Open, name: str, *, height: int = HEIGHT) -> Notebook:
    """Open a notebook whose last cell fails for a column's name, and wait for its card and panel."""
    book = notebook(name, LOAD, ORDERS, SUM, width=WIDTH, height=height)
    for number in range(3):
        book.run(number)
    expect(book.panel(2)).to_contain_text("The most similar one is 'revenue'.", timeout=SLOW_MS)
    expect(book.cell(2).get_by_text("library frame").first).to_be_visible()
    away(book.page)
    return book


def test_failure_its_panel_and_the_editor(notebook: Open) -> None:
    book, panel = failing(notebook, "mean_of", width=WIDTH, height=640)
    away(book.page)
    keep("panel_failure", seen(book.page, book.page.locator(".jp-Notebook")))
    book.page.set_viewport_size({"width": WIDTH, "height": 1000})
    fix(book, open_editor(panel))
    press(panel, "▶ Try")
    expect(outcome(panel, "true")).to_contain_text("5.0")
    panel.get_by_label("reason for this revision").fill("divide by how many there are")
    away(book.page)
    keep("panel_editor", seen(book.page, panel))


def test_fix_button_and_proposal(notebook: Open) -> None:
    book = failed(notebook, "orders")
    keep("failing_cell", seen(book.page, book.cell(2)))
    book.cell(2).get_by_role("button", name="Fix", exact=True).first.click()
    book.cell(2).get_by_role("button", name="Apply and run").wait_for(timeout=SLOW_MS)
    away(book.page)
    keep("fix_proposal", seen(book.page, book.cell(2)))


def halves(lab: Lab) -> None:
    """Run a tool with values that it can take, and with some that it cannot."""
    with Healkit(lab.folder / "healkit.db") as hk:
        if "halve" not in hk.vault.names():
            hk.vault.add("halve", "def halve(n: int):\n    return 10 // n\n")
        for n in (5, 2, 1, 0, 4, 0):
            hk.execute("halve", arguments={"n": n})


def test_log_in_its_cell(notebook: Open, lab: Lab) -> None:
    halves(lab)
    book = notebook("log", LOAD, "%executions --tool halve", width=WIDTH, height=900)
    book.run(0)
    book.run(1)
    panel = book.panel(1)
    press(panel, "halve v1")
    expect(panel.locator(".hk-detail")).to_contain_text("return 10 // n")
    away(book.page)
    keep("panel_log", seen(book.page, panel))


def test_log_beside_the_notebook(notebook: Open, lab: Lab) -> None:
    cells = (LOAD, "%executions --dock --tool halve --status FAILURE --limit 2", "%run_tool halve n=2")
    book = notebook("beside", *cells, view=WHOLE_LAB, width=1200, height=600)
    book.page.evaluate("() => jupyterapp.shell.collapseLeft()")
    for number in range(3):
        book.run(number)
    beside = book.page.locator("#jp-right-stack .hk")
    press(beside, "halve v1")
    expect(beside.locator(".hk-detail")).to_contain_text("10 // n")
    widen(book.page, 400)
    away(book.page)
    keep("panel_docked", seen(book.page))


def widen(page: Page, width: int) -> None:
    """Drag the edge of the right-hand side, as a person does."""
    handle = page.locator("#jp-main-split-panel > .lm-SplitPanel-handle:not(.lm-mod-hidden)").last
    box = handle.bounding_box()
    assert box is not None
    right = page.locator("#jp-right-stack").bounding_box()
    assert right is not None
    page.mouse.move(box["x"] + box["width"] / 2, 300)
    page.mouse.down()
    page.mouse.move(right["x"] + right["width"] - width, 300, steps=5)
    page.mouse.up()


def test_patch_that_waits_for_approval(notebook: Open) -> None:
    book = notebook(
        "fee", FEE, "hk.heal_panel('fee', advisors=['search'], budget_s=60)", width=WIDTH, height=900
    )
    book.run(0)
    book.run(1)
    panel = book.panel(1)
    press(panel, "Heal")
    consent, question = (panel.get_by_role("group", name=name) for name in ("consent", "question"))
    for number in range(1, 4):
        expect(question.get_by_text(f"Question {number} of").or_(consent)).to_be_visible(timeout=SLOW_MS)
        if consent.is_visible():
            break
        call = question.locator(".hk-headline code").inner_text()
        right = 20 if int(call.removeprefix("fee(items=").removesuffix(")")) >= 10 else 0
        question.get_by_label("another value").fill(str(right))
        book.page.keyboard.press("Enter")
    expect(consent).to_contain_text("items >= 10", timeout=SLOW_MS)
    away(book.page)
    keep("panel_heal", seen(book.page, panel))


def test_timeline_of_a_class(notebook: Open, lab: Lab) -> None:
    book, panel = timeline_opened(notebook, lab, "lesson", teach=True, width=1280, height=900)
    press(panel, "last step")
    editor = panel.get_by_role("textbox", name="your edit")
    editor.get_by_text("return", exact=True).click()
    book.page.keyboard.press("End")
    book.page.keyboard.type(" if buses else None")
    book.page.keyboard.press("Escape")
    press(panel, "Show the patch")
    expect(headline(panel)).to_contain_text("A rule proposes patch 1.")
    away(book.page)
    keep("panel_timeline", seen(book.page, panel))


def test_audit_of_a_decision(notebook: Open) -> None:
    book = notebook("decision", DECISION, DECISION_PANEL, width=WIDTH, height=1700)
    book.run(0)
    book.run(1)
    panel = book.panel(1)
    panel.get_by_role("region", name="Audit").wait_for(timeout=SLOW_MS)
    panel.locator("details", has_text="↻ corrected").locator("summary").click()
    expect(panel.get_by_label("details of step 4")).to_be_visible()
    away(book.page)
    keep("panel_audit", seen(book.page, panel))


def fill(path: Path) -> None:
    """Run, fail, heal and ask, as in a day's work."""
    with Healkit(path) as hk:
        hk.vault.add("mean", MEAN, examples=[{"arguments": {"values": [2, 4]}, "result": 3.0}])
        for code in (BASKET, GREET, RATIO, SLUG):
            hk.vault.add(code.partition("def ")[2].partition("(")[0], code)
        for values in ([1, 2], [3], [4, 5, 6]):
            hk.execute("mean", arguments={"values": values})
        hk.heal("mean", advisors=["rules", "search"], auto=True, budget_s=20)
        hk.execute("mean", arguments={"values": [1, 2]})
        for prices in ({"apple": 1.2, "pear": 0.8}, {"apple": 1.2}, {"pear": 0.8}):
            hk.execute("basket_total", arguments={"prices": prices})
        for name in ("Ada", "Grace"):
            hk.execute("greet", arguments={"name": name})
        for title in ("A day at sea", "", "Notes"):
            hk.execute("slug", arguments={"title": title})
        for wins, games in ((3, 4), (1, 0)):
            hk.execute("ratio", arguments={"wins": wins, "games": games})
        code = BASKET.replace('prices["apple"] + prices["pear"]', "sum(prices.values())")
        reason = "A basket need not hold both fruits."
        hk.requests.add("basket_total", code, reason=reason, advisor="rules", verdict="cured")


def without_paths(panel: Locator) -> None:
    """Hide the one line that names a folder of this machine: where the database is."""
    expect(panel.locator(".hk-side-where")).to_be_attached(timeout=SLOW_MS)
    panel.locator(".hk-side-where").evaluate("(line) => { line.style.visibility = 'hidden'; }")


def test_side_panel_and_page(notebook: Open, lab: Lab, browser: BrowserContext) -> None:
    for left in lab.folder.glob("healkit.db*"):
        left.unlink()
    fill(lab.folder / "healkit.db")
    cells = (LOAD, "%run_tool ratio wins=3 games=0")
    book = notebook("games", *cells, view=WHOLE_LAB, width=1200, height=600)
    book.page.evaluate("() => jupyterapp.shell.collapseLeft()")
    book.run(0)
    book.run(1)
    expect(book.panel(1)).to_contain_text("'games' is 0", timeout=SLOW_MS)
    book.page.evaluate("() => jupyterapp.commands.execute('healkit:open-panel').then(() => null)")
    panel = book.page.locator("#healkit-side-panel")
    widen(book.page, 440)
    failure = panel.get_by_role("listitem").filter(has_text="ratio")
    expect(failure).to_contain_text("2×", timeout=SLOW_MS)
    without_paths(panel)
    in_theme(book, panel, "Light")
    keep("side_panel", seen(book.page))
    failure.get_by_role("button").first.click()
    expect(panel.get_by_role("region", name="in full")).to_contain_text("ZeroDivisionError", timeout=SLOW_MS)
    in_theme(book, panel, "Dark")
    keep("side_panel_dark", seen(book.page))
    in_theme(book, panel, "Light")

    page = browser.new_page()
    page.set_viewport_size({"width": 1100, "height": 560})
    page.goto(f"{lab.url}/healkit/?token={lab.token}")
    page.get_by_role("tab", name="Tools").click()
    page.get_by_role("listitem").filter(has_text="mean").get_by_role("button").first.click()
    detail = page.get_by_role("region", name="in full")
    expect(detail).to_contain_text("len(values)", timeout=SLOW_MS)
    detail.get_by_role("button", name="v1").click()
    detail.get_by_role("button", name="Compare with it").click()
    expect(detail).to_contain_text("len(value)", timeout=SLOW_MS)
    without_paths(page.locator("body"))
    away(page)
    keep("log_page", seen(page))


def in_theme(book: Notebook, panel: Locator, name: str) -> None:
    """Choose JupyterLab's theme, and wait until all of the page has it."""
    book.choose_theme(f"JupyterLab {name}")
    expect(panel.locator("[data-theme]").first).to_have_attribute("data-theme", name.lower(), timeout=SLOW_MS)
    expect(book.page.locator("#jupyterlab-splash")).to_have_count(0, timeout=SLOW_MS)
    away(book.page)


class Film:
    """Pictures one after the other, each with the time for which it stands, and a pointer where a person's would be."""

    def __init__(self, page: Page, of: Locator) -> None:
        self.page, self.of = page, of
        self.at = (WIDTH * 0.6, HEIGHT * 0.75)
        self.frames: list[tuple[Image.Image, int]] = []
        self.last = seen(page, of)

    def show(self, for_s: float, *, new: bool = True) -> None:
        """Add what the page shows now."""
        if new:
            self.last = seen(self.page, self.of)
        frame = self.last.copy()
        box = self.of.bounding_box()
        assert box is not None
        x, y = ((self.at[0] - box["x"]) * SCALE, (self.at[1] - box["y"]) * SCALE)
        arrow = ((0, 0), (0, 17), (4, 13), (7, 19), (9.5, 18), (6.7, 12), (12, 12))
        points = [(x + SCALE * across * 1.3, y + SCALE * down * 1.3) for across, down in arrow]
        ImageDraw.Draw(frame).polygon(points, fill="black", outline="white", width=SCALE)
        self.frames.append((frame, round(1000 * for_s)))

    def go(self, to: Locator) -> None:
        """Move the pointer there."""
        box = to.bounding_box()
        assert box is not None
        (x, y), end = self.at, (box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6)
        steps = 10
        for step in range(1, steps + 1):
            part = (1 - math.cos(math.pi * step / steps)) / 2
            self.at = (x + (end[0] - x) * part, y + (end[1] - y) * part)
            self.show(GIVEN_S, new=False)
        self.page.mouse.move(*end)
        self.show(0.5)

    def save(self, path: Path) -> None:
        first, *rest = (picture for picture, _ in self.frames)
        times = [for_ms for _, for_ms in self.frames]
        first.save(path, save_all=True, append_images=rest, duration=times, loop=0, lossless=True, method=6)
        print(f"{path.name}: {sum(times) / 1000:.1f} s, {path.stat().st_size / 1e6:.2f} MB")


def test_film_of_a_fix(notebook: Open) -> None:
    book = notebook("film", LOAD, ORDERS, "", view=LAB, width=WIDTH, height=HEIGHT)
    book.run(0)
    book.run(1)
    page, cell = book.page, book.cell(2)
    cell.locator(".jp-InputArea-editor").click()
    away(page)
    film = Film(page, page.locator(".jp-Notebook"))
    film.show(1.5)
    for end in range(2, len(SUM) + 1, 2):
        page.keyboard.insert_text(SUM[end - 2 : end])
        film.show(GIVEN_S)
    page.keyboard.insert_text(SUM[len(SUM) // 2 * 2 :])
    film.show(0.7)
    page.keyboard.press("Control+Enter")
    expect(cell.get_by_role("button", name="Fix", exact=True).first).to_be_visible(timeout=SLOW_MS)
    expect(book.panel(2)).to_contain_text("The most similar one is 'revenue'.", timeout=SLOW_MS)
    expect(cell.get_by_text("library frame").first).to_be_visible()
    film.show(3.5)
    button = cell.get_by_role("button", name="Fix", exact=True).first
    film.go(button)
    button.click()
    film.show(0.3)
    put = cell.get_by_role("button", name="Apply and run")
    put.wait_for(timeout=SLOW_MS)
    film.show(4.5)
    film.go(put)
    put.click()
    expect(cell).to_contain_text("Name: revenue", timeout=SLOW_MS)
    expect(cell.locator(".hk")).to_have_count(0)
    film.at = (WIDTH * 0.6, HEIGHT * 0.75)
    away(page)
    film.show(5)
    film.save(IMAGES / "fix.webp")
