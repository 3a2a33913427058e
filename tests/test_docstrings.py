"""Docstrings begin with what a reader looks for: a verb or a noun, not an article or a question.

ruff's D rules check their form, and that a function's begins with an imperative verb.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "healkit"
AVOIDED = ("The ", "What ", "One ", "Whether ", "How ", "Where ")
FIRST_LINE_MAX = 60

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


def first_lines() -> Iterator[tuple[str, Documented, str]]:
    """File, node and first line of each docstring of the package; the gallery's codes are data."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if not {"broken", "healthy"} & set(path.parts):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, Documented) and (told := ast.get_docstring(node)):
                    yield path.relative_to(PACKAGE).as_posix(), node, told.partition("\n")[0]


def test_no_docstring_begins_with_an_article_or_a_question() -> None:
    assert [(name, line) for name, _, line in first_lines() if line.startswith(AVOIDED)] == []


def test_the_first_line_of_a_module_fits_a_list() -> None:
    modules = [(name, line) for name, node, line in first_lines() if isinstance(node, ast.Module)]
    assert [(name, line) for name, line in modules if len(line) > FIRST_LINE_MAX] == []
