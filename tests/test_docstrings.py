"""First lines of docstrings: a verb or a noun begins them.

An article or a question tells a reader less. ruff's D rules check the form of the package's docstrings, and that a
function's begins with an imperative verb.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("healkit", "tests", "benchmarks")
#: Codes that are kept or tested as data, and tools whose docstrings an MCP client is sent.
DATA = ("healkit/gallery/broken", "healkit/gallery/healthy", "tests/gallery/fixes", "tests/mcp/servers")
AVOIDED = ("The ", "What ", "One ", "Whether ", "How ", "Where ", "Which ")
ARTICLES = ("A ", "An ")
FIRST_LINE_MAX = 60

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


@functools.cache
def first_lines() -> list[tuple[str, type, str]]:
    """Return file, kind of node and first line of each docstring that is not data."""
    found = []
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(DATA):
            found += [
                (name, type(node), told.partition("\n")[0])
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, Documented) and (told := ast.get_docstring(node))
            ]
    return found


def test_no_docstring_begins_with_an_article_or_a_question() -> None:
    assert [(name, line) for name, _, line in first_lines() if line.startswith(AVOIDED)] == []


def test_only_a_class_of_the_package_begins_with_an_indefinite_article() -> None:
    assert [
        (name, line)
        for name, kind, line in first_lines()
        if line.startswith(ARTICLES) and not (kind is ast.ClassDef and name.startswith("healkit/"))
    ] == []


def test_the_first_line_of_a_module_fits_a_list() -> None:
    modules = [(name, line) for name, kind, line in first_lines() if kind is ast.Module]
    assert [(name, line) for name, line in modules if len(line) > FIRST_LINE_MAX] == []
