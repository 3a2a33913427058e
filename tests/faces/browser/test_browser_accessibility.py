"""Every card in one page, examined by axe-core."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
#: The HTML of every subject, as tests/core/rendering/test_golden.py writes it.
CARDS = sorted((ROOT / "tests" / "core" / "rendering" / "golden").glob("*.html.txt"))


def test_no_card_has_a_serious_fault_of_accessibility(axe: str, browser: BrowserContext) -> None:
    """U8: a card had no heading, no landmark and no row headers."""
    cards = [path.read_text().replace("⏎\n", "") for path in CARDS]
    assert len(cards) > 40
    bodies = "\n".join(cards)
    page = browser.new_page()
    page.set_content(
        f"<!doctype html><html lang='en'><title>Cards</title><main><h1>Cards</h1>{bodies}</main></html>"
    )
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    page.close()
    faults = [
        f"{fault['impact']} {fault['id']}: {node['html'][:200]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
    assert not faults, f"{len(faults)}:\n" + "\n".join(map(html.unescape, faults[:20]))
