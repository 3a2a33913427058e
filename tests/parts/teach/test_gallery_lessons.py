"""Gallery as data: complete, consistent, closed to a search."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import healkit
from healkit.parts.teach.gallery import LESSONS, SAMPLES

PACKAGE = Path(healkit.__file__).parent
GALLERY = PACKAGE / "parts" / "teach" / "gallery"
FIXES = Path(__file__).parent / "fixes"


@pytest.mark.requirement("VAULT-7")
def test_more_than_twelve_lessons_show_different_mistakes():
    assert len(LESSONS) >= 14
    for field in ("name", "title", "mistake", "question"):
        assert len({getattr(lesson, field) for lesson in LESSONS}) == len(LESSONS), field


def test_every_file_of_the_gallery_belongs_to_a_tool():
    for folder, tools in (("broken", LESSONS), ("healthy", SAMPLES)):
        assert {f"{folder}/{path.name}" for path in (GALLERY / folder).iterdir() if path.is_file()} == {
            tool.file for tool in tools
        }


def test_a_lesson_has_the_right_result_for_its_failing_arguments():
    for lesson in LESSONS:
        right = [example["result"] for example in lesson.examples if example["arguments"] == lesson.failing]
        assert len(right) == 1, lesson.name
        assert (lesson.ename is None) != (lesson.wrong_value is None), lesson.name
        assert lesson.wrong_value != right[0], lesson.name
        assert lesson.question.endswith("?"), lesson.name


def test_a_search_cannot_see_the_hidden_examples(hidden_examples):
    for lesson in LESSONS:
        assert len(hidden_examples[lesson.name]) >= 2, lesson.name
        seen = [example["arguments"] for example in lesson.examples]
        hidden = [example["arguments"] for example in hidden_examples[lesson.name]]
        assert not [arguments for arguments in hidden if arguments in seen], lesson.name


def test_nothing_in_the_package_reads_the_hidden_examples(hidden_examples):
    assert set(hidden_examples) == {lesson.name for lesson in LESSONS}
    naming = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "hidden_examples" in path.read_text() and "hidden_examples" in _code_without_docstrings(path)
    }
    assert naming == set()


def test_a_fix_changes_the_lesson_in_few_lines():
    for lesson in LESSONS:
        broken = lesson.code.splitlines()
        fixed = (FIXES / Path(lesson.file).name).read_text().splitlines()
        assert 0 < len(set(broken) - set(fixed)) + len(set(fixed) - set(broken)) <= 8, lesson.name


def _code_without_docstrings(path: Path) -> str:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    return ast.unparse(tree)
