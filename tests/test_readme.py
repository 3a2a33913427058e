"""README, executed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from site_pages import run_page

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


def commands(block: str) -> list[tuple[str, str]]:
    """Each command of a console block (with its `>` lines) and the output shown under it."""
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        more = [line[2:] for line in lines[1:] if line.startswith("> ")]
        found.append(("\n".join([lines[0], *more]), "\n".join(lines[1 + len(more) :])))
    return found


def folded(text: str) -> str:
    """Without what differs from run to run: times, durations, the machine's tier, padding."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<time>", text)
    text = re.sub(r"\d+(\.\d+)? m?s\b", "<duration>", text)
    text = re.sub(r"\b(namespaces|landlock)\b", "<tier>", text)
    return re.sub(r" {2,}", "  ", text).strip()


@pytest.mark.slow
@pytest.mark.requirement("LOG-1", "VAULT-4", "VAULT-5")
def test_the_story_prints_what_the_readme_shows(tmp_path: Path) -> None:
    assert run_page(ROOT / "README.md", tmp_path, environment(tmp_path)) == []


def test_every_file_it_links_to_is_there() -> None:
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    assert linked
    assert [target for target in linked if not (ROOT / target).exists()] == []
