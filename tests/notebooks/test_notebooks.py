"""Notebooks, run from top to bottom.

What is saved in them is what comes out.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from notebook_kernel import NotebookKernel

from healkit.gallery import SAMPLES

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
FIRST_REPAIR = NOTEBOOKS / "01_first_repair.ipynb"

#: What differs from one run to the next, or from one machine to the next.
VARYING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( UTC|\+00:00)?|since \w{3} \d+ \w{3} \d{4}|\d[\d,]*(\.\d+)? m?s\b"
    r"|duration_ms.: [\d.]+|repeated \d+ more times|\d{8}T\d{6}Z-[0-9a-f]{8}|\d[\d,]* candidates?\b|view_[0-9a-f]{12}|\d+(\.\d+)? KB\b|namespaces|landlock|Python 3\.\d+\.\d+|× \d+|-9\d\d\b"  # the last two: how deep a recursion came
)

#: What depends on the version of a library: its lines, and which of its files they are in.
LIBRARY = re.compile(
    r' +File "[^"]*(?:site|dist)-packages/[^"]*", line \d+, in .*\n(?: {4}.*\n)*|\d+ library frames? folded: .*'
)

EXERCISES = """\
%run_tool fibonacci n=0
%vault revert fibonacci 1
%vault blame fibonacci
print("more:", len(hk.seed().tools_added))
%run_tool count_votes ballots=["ada", "bo", "ada"]"""


@pytest.fixture(scope="module")
def executed(notebook_kernel, tmp_path_factory) -> NotebookNode:
    """Run the first notebook from top to bottom in a folder of its own, with the exercises as a last cell."""
    notebook = nbformat.read(FIRST_REPAIR, as_version=4)
    cell = nbformat.v4.new_code_cell(EXERCISES, metadata={"tags": ["raises-exception"]}, id="exercises")
    notebook.cells.append(cell)
    return run(notebook_kernel, notebook, tmp_path_factory.mktemp("notebook"))


@pytest.mark.slow
@pytest.mark.requirement("HEAL-6", "FACE-3")
def test_the_first_repair_fails_only_where_it_means_to_and_ends_mended(executed):
    assert [cell.id for cell in executed.cells if errors_of(cell)] == ["run-broken", "exercises"]
    assert errors_of(cell_of(executed, "run-broken")) == ["ToolExecutionError"]
    assert "ZeroDivisionError: division by zero" in text_of(cell_of(executed, "trace"))
    assert "ZeroDivisionError: division by zero" in text_of(cell_of(executed, "get-last-error"))
    assert "-        growth = current / previous" in text_of(cell_of(executed, "diff"))
    assert text_of(cell_of(executed, "run-mended")).endswith("55")


@pytest.mark.slow
def test_the_exercises_do_what_the_text_says(executed):
    said = text_of(cell_of(executed, "exercises"))
    assert "fibonacci v3 saved" in said
    assert "KeyError: 'ada'" in said
    assert f"more: {24 + len(SAMPLES)}" in said


@pytest.mark.slow
def test_the_outputs_saved_in_the_notebook_are_real(executed):
    """`HEALKIT_REGENERATE=1` saves the new outputs instead, to be read as a diff."""
    saved = nbformat.read(FIRST_REPAIR, as_version=4)
    if os.environ.get("HEALKIT_REGENERATE"):
        cells = [cell for cell in executed.cells if cell.id != "exercises"]
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=saved.metadata), FIRST_REPAIR)
        return
    for before, after in zip(saved.cells, executed.cells, strict=False):
        assert before.cell_type != "code" or before.execution_count == after.execution_count
        assert normalised(text_of(before)) == normalised(text_of(after)), before.id


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_is_valid_and_tells_nothing_of_the_machine_it_ran_on(path):
    nbformat.validate(nbformat.read(path, as_version=4))
    assert not re.search(r"/(home|root|tmp|work|Users)/", path.read_text())


def test_each_table_of_the_lessons_is_the_one_whose_source_and_licence_are_named():
    said = (NOTEBOOKS / "data" / "README.md").read_text()
    tables = sorted((NOTEBOOKS / "data").glob("*.csv"))
    assert [path.name for path in tables] == re.findall(r"^## (.+)$", said, re.MULTILINE)
    assert [sha256(path.read_bytes()).hexdigest() for path in tables] == re.findall(r"`([0-9a-f]{64})`", said)
    assert said.count("**Licence**") == said.count("**Source**") == len(tables)


def run(
    kernel: NotebookKernel, notebook: NotebookNode, folder: Path, *, panels: bool = False
) -> NotebookNode:
    with pytest.MonkeyPatch.context() as process:
        # What is saved is read where no panel could be drawn; tests/browser looks at those.
        process.setenv("HEALKIT_PANELS", str(int(panels)))
        return kernel.run(notebook, folder, record_timing=False, store_widget_state=False)


def cell_of(notebook: NotebookNode, cell_id: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if cell.id == cell_id)


def errors_of(cell: NotebookNode) -> list[str]:
    return [output.ename for output in cell.get("outputs", []) if output.output_type == "error"]


def text_of(cell: NotebookNode) -> str:
    """All outputs as plain text, one below the other."""
    parts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append("\n".join(output.traceback))
        else:
            parts.append(output.data["text/plain"])
    return "\n".join(parts)


def normalised(text: str) -> str:
    """Remove times and durations, libraries' frames, and the spaces that line them up."""
    return re.sub(r"\s+", " ", VARYING.sub("…", LIBRARY.sub("…", text)))


def elsewhere(text: str) -> str:
    """Remove from a saved notebook's text the folder that this machine keeps libraries in."""
    return re.sub(r"[^\s\"'<>\\]*/(?:site|dist)-packages/", "site-packages/", text)
