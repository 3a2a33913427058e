"""The notebooks on panels, the gallery, own cells and healing: executed, and saved as they came out."""

from __future__ import annotations

import os
import sys

import nbformat
import pytest
from test_notebooks import NOTEBOOKS, cell_of, elsewhere, errors_of, normalised, run, text_of

from healkit.gallery import LESSONS

BROWSE = NOTEBOOKS / "02_browse_and_patch.ipynb"
GALLERY, OWN = NOTEBOOKS / "03_break_it_gallery.ipynb", NOTEBOOKS / "04_your_own_cells.ipynb"
HEALING = NOTEBOOKS / "05_self_healing.ipynb"
#: Of the two lessons about what comes of `None`, one is enough for a first hour.
RAISING = [lesson for lesson in LESSONS if lesson.ename and lesson.name != "top_three"]

#: Version of Python → what it writes otherwise than the one before it, in the cells that fail.
SINCE = {
    (3, 12): {
        "name 'longets' is not defined longest_word@1 failed": "name 'longets' is not defined. Did you mean: 'longest'? longest_word@1 failed",
    },
    (3, 13): {
        f"factorial(n - 1) {'^' * 16} ": f"factorial(n - 1) {'~' * 9}{'^' * 7} ",
        f"list(dict.fromkeys(list)) {'^' * 25} ": "list(dict.fromkeys(list)) ",
    },
}

pytestmark = pytest.mark.timeout(600)


def as_this_python_says(text: str) -> str:
    """The text that 3.11 saved, in the words of the Python that runs."""
    for version, changes in SINCE.items():
        for old, new in changes.items() if sys.version_info >= version else ():
            text = text.replace(old, new)
    return text


@pytest.fixture(
    scope="module",
    params=[OWN, *(pytest.param(path, marks=pytest.mark.slow) for path in (BROWSE, GALLERY, HEALING))],
    ids=lambda path: path.stem,
)
def book(request, notebook_kernel, tmp_path_factory):
    """Path and executed notebook."""
    saved = nbformat.read(request.param, as_version=4)
    executed = run(notebook_kernel, saved, tmp_path_factory.mktemp("notebook"))
    return request.param, executed


@pytest.mark.requirement("HEAL-6", "FACE-3", "FACE-7")
def test_it_fails_where_it_means_to_and_what_is_saved_is_what_comes_out(book):
    path, executed = book
    meant = [cell.id for cell in executed.cells if "raises-exception" in cell.metadata.get("tags", [])]
    assert [cell.id for cell in executed.cells if errors_of(cell)] == meant
    saved = nbformat.read(path, as_version=4)
    if os.environ.get("HEALKIT_REGENERATE"):
        text = nbformat.writes(nbformat.v4.new_notebook(cells=executed.cells, metadata=saved.metadata))
        path.write_text(elsewhere(text) + "\n")
        return
    for before, after in zip(saved.cells, executed.cells, strict=True):
        assert as_this_python_says(normalised(text_of(before))) == normalised(text_of(after)), before.id


@pytest.mark.requirement("FACE-4")
def test_a_card_adds_less_than_30_kb_to_the_file(book):
    for cell in book[1].cells:
        for output in cell.get("outputs", []):
            if output.output_type == "display_data":
                assert len(nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))) < 40_000
                assert sum(len(text) for text in output.data.values()) < 30_000


def test_the_gallery_asks_the_questions_of_its_lessons():
    saved = nbformat.read(GALLERY, as_version=4)
    assert len(RAISING) == 12
    for lesson in RAISING:
        asked = cell_of(saved, f"{lesson.name}-question").source
        assert lesson.question in asked
        assert lesson.mistake in asked
        assert f"%vault revert {lesson.name} 1" in asked
        assert errors_of(cell_of(saved, f"{lesson.name}-run")) == ["ToolExecutionError"]
        assert lesson.ename in text_of(cell_of(saved, f"{lesson.name}-run"))
        assert "A way to mend it" not in str(cell_of(saved, f"{lesson.name}-run").outputs)


@pytest.mark.slow
@pytest.mark.requirement("FACE-4")
def test_the_panels_that_the_second_notebook_talks_about_are_below_its_cells(notebook_kernel, tmp_path):
    executed = run(notebook_kernel, nbformat.read(BROWSE, as_version=4), tmp_path, panels=True)
    widget = "application/vnd.jupyter.widget-view+json"
    opened = [
        cell.id
        for cell in executed.cells
        if any(widget in o.get("data", {}) for o in cell.get("outputs", []))
    ]
    assert opened == ["log", "filter", "search", "trace", "run-reverted", "run-twelve"]
