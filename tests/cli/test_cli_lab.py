"""Tools that the lab adds, and where it opens."""

from __future__ import annotations

import shutil
from pathlib import Path

from healkit import Healkit
from healkit.cli.lab import lab_command, notebooks_folder, seeded


def test_a_vault_with_tools_is_not_filled_with_lessons(tmp_path: Path, empty_database: Path) -> None:
    """U8: `healkit lab` added 35 tools to the user's own vault."""
    path = shutil.copy(empty_database, tmp_path / "healkit.db")
    with Healkit(path) as healkit:
        healkit.vault.add("mine", "def mine():\n    return 1\n")
        assert seeded(healkit) == "1 tool; healkit seed adds those of the lessons"
        assert [entry.tool_name for entry in healkit.vault.list()] == ["mine"]


def test_an_empty_vault_gets_the_lessons(tmp_path: Path, empty_database: Path) -> None:
    path = shutil.copy(empty_database, tmp_path / "healkit.db")
    with Healkit(path) as healkit:
        assert seeded(healkit)
        assert "fibonacci" in {entry.tool_name for entry in healkit.vault.list()}


def test_the_lab_opens_on_the_first_lesson(tmp_path: Path) -> None:
    """U8: it opened an empty launcher."""
    folder = notebooks_folder()
    words = lab_command(folder, port=None, browser=True, extra=["--LabApp.default_url=/lab"])
    first = words.index("--LabApp.default_url=/lab/tree/01_first_repair.ipynb")
    assert first < words.index("--LabApp.default_url=/lab")  # what you say comes last, and counts
    assert not any("default_url" in word for word in lab_command(tmp_path, port=None, browser=True, extra=[]))
