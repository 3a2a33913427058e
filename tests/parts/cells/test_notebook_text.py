"""Notebook files as text, and the order of their cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healkit.parts.cells.notebook_file import NotebookCell, NotebookText
from healkit.parts.cells.notebook_state import order_remarks

ROOT = Path(__file__).parents[3]
#: Ways in which programs write the same notebook.
FORMS: dict[str, dict[str, Any]] = {
    "Jupyter": {"indent": 1, "ensure_ascii": False},
    "Colab": {"indent": 2},
    "one line": {},
    "compact": {"separators": (",", ":")},
}
#: Without DEL, which Python writes as an escape or as it is.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f"), min_size=1).filter(
    str.strip
)


def written(folder: Path, sources: list[Any], form: str = "Jupyter") -> Path:
    """Write a notebook with code cells of these sources, each with an output that looks like a part of a cell."""
    output = {"output_type": "stream", "name": "stdout", "text": '"source": ["x"]'}
    cells = [
        {
            "outputs": [output],
            "cell_type": "code",
            "metadata": {"source": 1},
            "source": one,
            "execution_count": None,
        }
        for one in sources
    ]
    path = folder / "book.ipynb"
    path.write_text(
        json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}, **FORMS[form]), encoding="utf-8"
    )
    return path


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    new=TEXTS,
    as_list=st.booleans(),
    form=st.sampled_from(list(FORMS)),
)
def test_an_edit_changes_the_text_of_one_cell_only(
    tmp_path_factory: pytest.TempPathFactory, form: str, texts: list[str], new: str, as_list: bool
) -> None:
    sources = [one.splitlines(keepends=True) if as_list else one for one in texts]
    path = written(tmp_path_factory.mktemp("form"), sources, form)
    book = NotebookText(path)
    assert [cell.source for cell in book.cells] == texts
    assert book.edited({}) == book.text
    assert book.edited({1: texts[0]}) == book.text
    before, after = json.loads(book.text), json.loads(book.edited({1: new}))
    source = after["cells"][0].pop("source")
    assert "".join(source) == new
    assert isinstance(source, list) == as_list
    before["cells"][0].pop("source")
    assert before == after


def test_edits_of_our_own_notebooks_are_their_own_text() -> None:
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        book = NotebookText(path)
        assert book.edited({cell.number: cell.source for cell in book.cells}) == path.read_text()


def test_a_line_of_a_cell_is_found_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, [["a = 1\n", "b = 2\n", "c = 3"], ["d = 4\ne = 5\n", "f = 6"], "g = 7\nh = 8"])
    book, lines = NotebookText(path), path.read_text().splitlines()
    for number, line, text in (
        (1, 1, "a = 1"),
        (1, 3, "c = 3"),
        (2, 2, "e = 5"),
        (2, 3, "f = 6"),
        (3, 2, "h = 8"),
    ):
        assert text in lines[book.line_of(number, line) - 1]
    assert book.line_of(1, 0) == book.line_of(1, 1)


def remarks(*sources: str, counts: tuple[int | None, ...] = ()) -> list[str]:
    """Return the remarks on these cells."""
    given_counts = counts or (None,) * len(sources)
    cells = [
        NotebookCell(number, source, "", count)
        for number, (source, count) in enumerate(zip(sources, given_counts, strict=True), 1)
    ]
    return [one.sentence for one in order_remarks(cells)]


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (("x = 1", "print(x)"), []),
        (("print(x)", "x = 1"), ["Cell 1 reads `x`, which cell 2 (`x = 1`) defines."]),
        (("def f():\n    return x", "x = 1"), []),  # it is called later
        (("try:\n    x\nexcept NameError:\n    x = 0", "x = 1"), []),
        (("from math import *", "print(pi)", "pi = 3"), []),
        (("%run other.py", "print(x)", "x = 1"), []),
        (("print(len('a'), display)", "len = 3"), []),
    ],
)
def test_a_name_that_only_a_cell_further_down_defines_is_remarked(
    sources: tuple[str, ...], said: list[str]
) -> None:
    assert remarks(*sources) == said


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((None, None), []),
        ((3, 9), []),
        ((2, 1), ["Cell 2 (In [1]) was run before cell 1 (In [2]) above it."]),
        ((None, 1), ["Cell 1 was not run before it was saved."]),
    ],
)
def test_prompts_as_they_were_saved_are_compared(counts: tuple[int | None, ...], said: list[str]) -> None:
    assert remarks("1", "2", counts=counts) == said
