"""Modules' docstrings: a first line that fits a list.

What a docstring says is for a reader to judge: it begins with an imperative verb or a noun phrase that one would say.
ruff's D rules check the rest of the form.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("healkit", "tests", "benchmarks")
#: Codes that are kept or tested as data, and tools whose docstrings an MCP client is sent.
DATA = (
    "healkit/parts/teach/gallery/broken",
    "healkit/parts/teach/gallery/healthy",
    "tests/parts/teach/fixes",
    "tests/parts/mcp_client/servers",
)
FIRST_LINE_MAX = 60


def test_the_first_line_of_a_module_fits_a_list() -> None:
    too_long = []
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(DATA):
            told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            if len(line := told.partition("\n")[0]) > FIRST_LINE_MAX:
                too_long.append((name, line))
    assert too_long == []
