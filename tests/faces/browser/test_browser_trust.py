"""JupyterLab's question about a foreign database."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from browser_lab import SLOW_MS, WHOLE_LAB, Lab
from playwright.sync_api import BrowserContext, expect

from healkit import Healkit
from healkit.core.store.database import Database

pytestmark = [pytest.mark.timeout(300), pytest.mark.requirement("TRUST-2")]


def test_a_person_is_asked_once_whether_they_trust_a_database_from_elsewhere(
    lab: Lab, browser: BrowserContext, tmp_path: Path
) -> None:
    with Healkit(tmp_path / "theirs.db") as theirs:
        theirs.vault.add("notes", "def notes(path: str):\n    return open(path).read()\n")
        with theirs.database.write() as session:
            session.connection().exec_driver_sql(
                "UPDATE toolregistry SET grants = ? WHERE tool_name = 'notes'",
                ('{"read": ["/<img src=x onerror=window.hostile=1>"]}',),
            )
    place = Path(shutil.copy(tmp_path / "theirs.db", lab.folder / "healkit.db"))
    assert not Database(place, only_read=True).trusted
    page = browser.new_page()
    page.goto(f"{lab.url}/{WHOLE_LAB.partition('/')[0]}?token={lab.token}")
    question = page.locator(".jp-Dialog")
    expect(question).to_contain_text("Trust this database?", timeout=SLOW_MS)
    expect(question).to_contain_text("notes v1: read")
    expect(question).to_contain_text("<img src=x")  # a text, and nothing else
    expect(question.get_by_role("button", name="Not now")).to_be_focused()
    page.screenshot(path=tmp_path / "question.png")
    page.keyboard.press("Enter")
    expect(question).to_have_count(0)
    assert not Database(place, only_read=True).trusted
    page.reload()
    page.locator(".jp-Dialog").get_by_role("button", name="Trust", exact=True).click(timeout=SLOW_MS)
    expect(page.locator(".hk-lab-status")).to_be_visible(timeout=SLOW_MS)
    page.wait_for_function("async () => true")
    expect(page.locator(".jp-Dialog")).to_have_count(0)
    assert page.evaluate("() => window.hostile") is None
    assert Database(place, only_read=True).trusted
    page.close()
