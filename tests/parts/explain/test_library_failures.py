"""Failures of libraries, run for real: explained truly or not."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import tempfile
from pathlib import Path

import msgspec
import pytest
from library_failures import Example, Ran, examples, is_regenerating, run, run_code
from truth import runs, untrue

from healkit.core.contracts.explanation import Explanation
from healkit.core.pysource.shapes import parse, read_shape
from healkit.parts.explain.catalogue import patterns, subjects
from healkit.parts.explain.explanation import MatchedFailure, explain
from healkit.parts.explain.fixes import change_of, explained
from healkit.parts.teach.gallery import LESSONS, Lesson

PAGE = Path(__file__).parents[3] / "docs" / "library_failures.md"
EXAMPLES = {example.name: example for example in examples()}
RAISING = [lesson for lesson in LESSONS if lesson.ename is not None]
#: Rows of the catalogue whose own example can be run here; the others are of code that cannot be read, or must be stopped.
ROWS = [
    text
    for pattern in patterns()
    if not {"SyntaxError", "IndentationError", "TabError", "CodeDoesNotParse"} & set(pattern.raises)
    for text in pattern.texts
    if text.example and text.name not in {"timeout", "memory"}
]
OBSERVED = {text.name for subject in subjects().values() for text in subject.facts}
#: Rows of the table for which only their message is explained, which holds all that is said.
BY_MESSAGE = {
    "read_csv_missing",
    "read_csv_fields",
    "read_csv_empty",
    "import_near_name",
}


@functools.cache
def ran(name: str) -> Ran:
    with tempfile.TemporaryDirectory() as folder:
        return run(EXAMPLES[name], Path(folder))


def message_of(name: str) -> str:
    """Return Python's own last lines, without what follows the first two and without paths of this machine."""
    failure = ran(name).failure
    kept = " ".join(failure.evalue.split("\n\n")[0].split())
    kept = re.sub(r" \(/[^)]*\)", "", kept)
    return f"{failure.ename}: {kept if len(kept) <= 300 else kept[:299] + '…'}"


def false_words(explanation: Explanation, found: Ran, code: str, shown: str = "") -> list[str]:
    """Return what an explanation names that is neither the user's own nor a library's."""
    failure = found.failure
    said = [explanation.what, explanation.why, explanation.hint, explanation.fix]
    return untrue(said, code, found.names, f"{failure.evalue}{failure.traceback}{shown}")


@pytest.mark.requirement("DATA-6")
def test_what_is_said_of_a_failure_is_true_for_the_users_own_objects():
    """U4: columns of another table were named as keys, and every name in the sentences is now the user's own."""
    wrong = []
    for name, example in EXAMPLES.items():
        failure, explanation = ran(name).failure, explain(ran(name).failure)
        shown = " ".join(["", *example.files, *example.files.values()])
        wrong += [(name, one) for one in false_words(explanation, ran(name), example.code, shown)]
        assert ("about" in failure.facts) != (name in BY_MESSAGE), name
        assert explanation.rule == failure.facts.get("about", explanation.rule)
        assert explanation.rule not in {"any", "unexplained"}
        said = (explanation.what, explanation.why, explanation.hint, explanation.fix)
        assert not any(re.search(r"\{[a-z_]+(?::\w+)?\}", text.partition("‸")[0]) for text in said), name
    assert wrong == []


@pytest.mark.requirement("DATA-6")
def test_code_that_an_explanation_ends_in_does_not_fail_so_again():
    for name, example in EXAMPLES.items():
        failure = ran(name).failure
        if (change := change_of(MatchedFailure(failure), example.code)) is None:
            continue
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.suppress(AssertionError),
        ):  # it may not fail at all
            again = run(dataclasses.replace(example, code=change.code), Path(folder)).failure
            if (again.ename, again.evalue) == (failure.ename, failure.evalue):
                pytest.fail(f"{name}: {change.lines}")


@pytest.mark.requirement("DATA-6")
def test_code_that_is_suggested_runs_where_it_failed():
    for name in EXAMPLES.keys() - BY_MESSAGE:
        suggested = ran(name).failure.facts.get("instead", "").strip("`")
        assert runs(suggested, ran(name).names), name


def test_each_sentence_for_facts_is_shown_by_a_real_failure():
    shown = {ran(name).failure.facts.get("about") for name in EXAMPLES}
    in_a_worker = {"no_processes"}  # tests/core/runtime/test_public_habits.py fails so there
    assert OBSERVED - shown == in_a_worker
    assert len(EXAMPLES) >= 60


@pytest.mark.parametrize(
    ("code", "never"),
    [
        # U4: the keys of another table or dict.
        ("import pandas as pd\nother = pd.DataFrame({'unit': [1]})\nd = {'units': 1}\nd['unit']", "other"),
        ("other = {'ample': 1}\ndef make():\n    return {}\nmake()['sample']", "ample`"),
        (
            "import pandas as pd\nother = pd.DataFrame({'units': [1]})\npd.DataFrame({'a': [1]})['unit']",
            "units",
        ),
        # U4: a default for the key of a dict, where there is none.
        ("import pandas as pd\npd.DataFrame({'a': [1]}).groupby('a').agg({'b': 'sum'})", "get("),
        # The axis of another call in that line.
        (
            "import pandas as pd\npd.DataFrame({'a': [1], 'c': ['x']}).drop('c').sum(axis=1)",
            "wrong axis",
        ),
        # U4: a module of Python's own that only looks similar.
        ("import cv2_not_there", "csv"),
    ],
)
def test_no_other_object_is_spoken_of(code, never):
    """U4: what lies near the failure, and has nothing to do with it, is not named."""
    explanation = explain(run_code(code).failure)
    assert never not in explanation.to_text()


def test_values_that_look_private_are_not_shown():
    code = "people = {'ada@example.org': 1, 'k9X2mQ7vRt4LpZ81': 2}\npeople['bob@example.org']"
    assert run_code(code).failure.facts.keys() <= {"kinds"}


def test_facts_run_no_code_of_the_users_objects():
    code = (
        "class Hostile(dict):\n    def keys(self):\n        raise SystemExit\n"
        "    def __len__(self):\n        raise SystemExit\n    def __iter__(self):\n        raise SystemExit\n"
        "    def __getattribute__(self, name):\n        raise SystemExit\n"
        "hostile = Hostile(a=1)\nhostile['b']"
    )
    assert explain(run_code(code).failure).what


def ran_lesson(lesson: Lesson) -> tuple[str, Ran]:
    """Run a tool of the gallery with the arguments that it fails for."""
    shape = read_shape(parse(lesson.code, "<example@1>"), lesson.name)
    call = f"{shape.entry}().run" if shape.kind == "class" else shape.entry
    given = repr(lesson.failing) if shape.takes_dict else f"**{lesson.failing!r}"
    code = f"{lesson.code}\n{call}({given})\n"
    return code, run_code(code)


@pytest.mark.requirement("DATA-6")
def test_what_is_said_of_a_tool_of_the_gallery_is_true():
    for lesson in RAISING:
        code, found = ran_lesson(lesson)
        assert found.failure.ename.rpartition(".")[2] == lesson.ename
        assert false_words(explain(found.failure), found, code, " ".join(found.failure.near)) == []


@pytest.mark.requirement("DATA-6")
def test_what_a_row_of_the_catalogue_says_of_its_own_example_is_true():
    """U4: sentences named a `table`, `d` or `key` that the user does not have."""
    wrong = []
    for row in ROWS:
        found = run_code(row.example)
        for failure in (found.failure, msgspec.structs.replace(found.failure, facts={})):
            shown = " ".join(failure.near)
            wrong += [(row.name, one) for one in false_words(explain(failure), found, row.example, shown)]
    assert wrong == []


def page() -> str:
    """Write the expected page: every row with Python's message and healkit's."""
    lines = [
        "# Failures of pandas, numpy, scikit-learn and Python",
        "",
        f"{len(EXAMPLES)} failures as they happen in notebooks, each with the last line that Python prints and what healkit says",
        "below it. `tests/parts/explain` runs each of them and checks this page. They are common mistakes with columns, shapes, types",
        "and missing values, and packages that are not installed.",
        "",
        "healkit looks at the objects at hand when the line failed: the table that lacks the column, the row whose text is not a",
        "number, the shapes of both arrays. Your code does not run for this. The failure keeps a few short texts, which the",
        "[sanitiser](sanitizing.md) cleans like everything else. Where the objects do not show what is wrong, healkit says only",
        "what the message says.",
    ]
    group = ""
    for example in EXAMPLES.values():
        if example.group != group:
            group = example.group
            lines += ["", f"## {group[:1].upper()}{group[1:]}"]
        lines += ["", f"### {example.title}", "", *block(example)]
    return "\n".join(lines) + "\n"


def block(example: Example) -> list[str]:
    """Write one row: the code, Python's message, and healkit's sentences."""
    explanation = explained(ran(example.name).failure, "", example.code)
    files = [f"# {name}: {text.removeprefix('latin-1:')!r}" for name, text in example.files.items()]
    said = [f"{title}: {text}" for title, text in explanation.steps() if title != "Where"]
    code = ["```python", *files, *example.code.strip().splitlines(), "```"]
    return [*code, "", "```text", message_of(example.name), "", *said, "```"]


@pytest.mark.requirement("DATA-6")
def test_the_page_shows_what_is_said_today():
    if is_regenerating():
        PAGE.write_text(page())
    assert PAGE.read_text() == page(), "run with HEALKIT_REGENERATE=1 and review the diff"
