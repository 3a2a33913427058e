"""Lessons run for real."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from healkit import Healkit
from healkit.core.pysource.shapes import parse, read_shape
from healkit.parts.teach.gallery import LESSONS, SAMPLES, Lesson, Sample

FIXES = Path(__file__).parent / "fixes"
#: One of each kind of tool, with an exception and with a wrong result; the others are run in this process.
IN_WORKERS = ("fibonacci", "count_votes", "seat_holder", "busiest_region", "sum_to", "top_three")
IN_PYTHON = [lesson for lesson in LESSONS if lesson.type == "python"]


def by_name(tool: Sample) -> str:
    return tool.name


@pytest.fixture(scope="module")
def healkit(tmp_path_factory):
    """Lend one seeded Healkit for the module; each test uses another tool of it."""
    with Healkit(tmp_path_factory.mktemp("gallery") / "healkit.db") as opened:
        opened.seed()
        yield opened


@pytest.mark.slow
@pytest.mark.requirement("VAULT-7", "VAULT-6", "WORK-1")
@pytest.mark.parametrize(
    "lesson", [lesson for lesson in LESSONS if lesson.name in IN_WORKERS or lesson.type == "sql"], ids=by_name
)
def test_a_lesson_fails_as_declared_and_its_fix_passes(healkit: Healkit, lesson: Lesson):
    broken = healkit.execute(lesson.name, "default", lesson.failing)
    if lesson.ename is None:
        assert broken.failure is None
        assert broken.value == lesson.wrong_value
    else:
        assert broken.failure is not None
        assert (broken.failure.ename, broken.failure.code) == (lesson.ename, "TOOL_EXCEPTION")
        assert broken.failure.tool_frame is not None

    healkit.vault.patch(lesson.name, fix_of(lesson), reason="the known good fix")
    example = next(example for example in lesson.examples if example["arguments"] == lesson.failing)
    fixed = healkit.execute(lesson.name, "default", lesson.failing)
    assert fixed.failure is None, fixed.failure.traceback
    assert fixed.value == example["result"]


@pytest.mark.requirement("VAULT-7")
@pytest.mark.parametrize("sample", SAMPLES, ids=by_name)
def test_a_healthy_sample_passes_its_examples(healkit: Healkit, sample: Sample):
    for example in sample.examples:
        assert healkit.execute_tool(sample.name, "default", example["arguments"]) == example["result"]


@pytest.mark.parametrize("lesson", IN_PYTHON, ids=by_name)
def test_a_lesson_fails_and_its_fix_passes_all_examples_seen_and_hidden(lesson: Lesson, hidden_examples):
    if lesson.ename is None:
        assert call(lesson.code, lesson.name, lesson.failing) == lesson.wrong_value
    else:
        with pytest.raises(Exception) as raised:  # noqa: PT011 - its kind is what is looked at
            call(lesson.code, lesson.name, lesson.failing)
        assert type(raised.value).__name__ == lesson.ename
    for example in (*lesson.examples, *hidden_examples[lesson.name]):
        assert call(fix_of(lesson), lesson.name, example["arguments"]) == example["result"]


def test_the_sql_fix_passes_the_hidden_examples(healkit: Healkit, hidden_examples):
    for lesson in LESSONS:
        if lesson.type == "sql":
            name = f"{lesson.name}_mended"
            healkit.vault.add(name, fix_of(lesson), type="sql")
            for example in (*lesson.examples, *hidden_examples[lesson.name]):
                assert healkit.execute_tool(name, "default", example["arguments"]) == example["result"]


def fix_of(lesson: Lesson) -> str:
    return (FIXES / Path(lesson.file).name).read_text()


def call(code: str, name: str, arguments: dict[str, Any]) -> Any:
    """Run trusted code right here: a worker for each of a hundred examples would take a minute."""
    shape = read_shape(parse(code, name), name)
    arguments = copy.deepcopy(arguments)
    namespace: dict[str, Any] = {"arguments": arguments}
    exec(compile(code, name, "exec"), namespace)
    if shape.kind == "script":
        return namespace["result"]
    if shape.kind == "class":
        return namespace[shape.entry]().run(arguments)
    return namespace[shape.entry](**arguments)
