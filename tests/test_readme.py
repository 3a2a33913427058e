"""README, executed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from site_pages import run_page

from healkit.faces.notebook.magic_parsers import PARSERS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def environment(folder: Path) -> dict[str, str]:
    """Make a newcomer's environment in an empty folder, with the commands of this very environment first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": path,
        "HOME": str(folder),
        "HEALKIT_DB": str(folder / "healkit.db"),
        "COLUMNS": "120",
        "TERM": "dumb",
    }


@pytest.mark.slow
@pytest.mark.requirement("LOG-1", "VAULT-4", "VAULT-5")
def test_the_story_prints_what_the_readme_shows(tmp_path: Path) -> None:
    assert run_page(ROOT / "README.md", tmp_path, environment(tmp_path)) == []


def test_every_magic_that_it_names_is_there() -> None:
    named = set(re.findall(r"`%+([a-z]\w+)", README))
    assert named
    assert named <= set(PARSERS)


def test_every_file_it_links_to_is_there() -> None:
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    assert linked
    assert [target for target in linked if not (ROOT / target).exists()] == []
