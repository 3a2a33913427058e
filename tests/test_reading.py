"""How to read the core: its files, and the lines of a walk."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATH = ROOT / "docs" / "reading.md"
_STEP = re.compile(r"`(healkit/[\w/]+\.py):\d+`: `([\w.]+)`")


def line_of(file: str, name: str) -> int:
    """Return the line of a function, or of a method by its class."""
    owner: ast.AST = ast.parse((ROOT / file).read_text())
    for part in name.split("."):
        owner = next(
            node
            for node in ast.iter_child_nodes(owner)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == part
        )
    return owner.lineno


@pytest.mark.slow
def test_the_walk_has_the_lines_of_the_code() -> None:
    text = PATH.read_text()

    def numbered(step: re.Match[str]) -> str:
        return f"`{step[1]}:{line_of(step[1], step[2])}`: `{step[2]}`"

    wanted = _STEP.sub(numbered, text)
    if os.environ.get("HEALKIT_REGENERATE"):
        PATH.write_text(wanted)
    assert len(_STEP.findall(text)) >= 15
    assert PATH.read_text() == wanted


@pytest.mark.requirement("ARCH-1")
def test_the_core_is_read_in_twenty_files_that_are_there() -> None:
    files = re.findall(r"^\| `(healkit/core/[\w/]+\.py)` \| .+\? ?.*\|$", PATH.read_text(), re.MULTILINE)
    assert len(files) == len(set(files)) == 20
    assert all((ROOT / file).exists() for file in files)
