"""Catalogue of texts that users read on screen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prose import ROOT, explanation_texts, literals, script_texts

CATALOGUE = ROOT / "docs" / "texts.md"
HEAD = """# Texts

All texts that users read on screen: cards, errors, panels, commands and JupyterLab's extension. They stand where they are used, as in
most Python projects; this page collects them, so that they can be read in one sitting and translated. `…` stands for a value that is
filled in. `HEALKIT_REGENERATE=1 pytest tests/test_texts.py -m slow` writes the page.
"""


def catalogue() -> str:
    """Return the page as the sources have it."""
    lines = [HEAD]
    for path in sorted((ROOT / "healkit").rglob("*.py")):
        lines += _section(path, dict.fromkeys(text for _, text in literals(path)))
    for path in sorted((ROOT / "healkit" / "parts").rglob("*.toml")):
        lines += _section(path, dict.fromkeys(explanation_texts(path)))
    for folder, pattern in (("js/lab/src", "*.ts*"), ("js/src", "*.js")):
        for path in sorted((ROOT / folder).rglob(pattern)):
            lines += _section(path, dict.fromkeys(text for _, text in script_texts(path)))
    return "\n".join(lines)


def _section(path: Path, texts: dict[str, None]) -> list[str]:
    if not texts:
        return []
    shown = ("`" * 3, *(" ".join(text.split()) for text in texts), "`" * 3)
    return [f"## {path.relative_to(ROOT).as_posix()}", "", f"{shown[0]}text", *shown[1:], ""]


@pytest.mark.slow
def test_the_catalogue_has_every_text() -> None:
    if os.environ.get("HEALKIT_REGENERATE"):
        CATALOGUE.write_text(catalogue())
    assert CATALOGUE.read_text() == catalogue()
