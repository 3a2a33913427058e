"""Examples in the docstrings of the public API, as doctests."""

from __future__ import annotations

import doctest
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))
import reference_pages  # noqa: E402 - found in the folder of the pages

#: Name → the docstring of each class and function on the page of the Python API, once for each function.
DOCSTRINGS = {entry.name: entry.text for entry in reference_pages.api_entries() if not entry.same_as}
#: Those that need a notebook with healkit's extension: there, each prompt of their example is a cell.
IN_A_NOTEBOOK = {"hk.heal_cell"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Run the code from which each example starts, in a folder of its own; lend its names."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as environment:
        environment.chdir(tmp_path_factory.mktemp("examples"))
        exec(reference_pages.SETUP, names)
        yield names
        names["hk"].close()


@pytest.mark.pages
@pytest.mark.parametrize("name", sorted(DOCSTRINGS.keys() - IN_A_NOTEBOOK))
def test_an_example_prints_what_it_shows(name: str, start: dict[str, Any]) -> None:
    example = doctest.DocTestParser().get_doctest(DOCSTRINGS[name], start, name, None, None)
    report: list[str] = []
    ended = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=report.append)
    assert ended.failed == 0, "".join(report)


@pytest.mark.slow
@pytest.mark.pages
@pytest.mark.parametrize("name", sorted(IN_A_NOTEBOOK))
def test_an_example_for_a_notebook_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    prompts = doctest.DocTestParser().get_examples(DOCSTRINGS[name])
    sources = [reference_pages.SETUP, "%load_ext healkit", *(prompt.source.rstrip() for prompt in prompts)]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=100, allow_errors=True, resources=resources).execute()
    shown = [prompt.exc_msg or prompt.want for prompt in prompts]
    assert [printed(cell) for cell in book.cells[-len(prompts) :]] == shown


def printed(cell: nbformat.NotebookNode) -> str:
    """Return the error or the value of a cell, as an example shows it; without either, nothing."""
    for output in cell.outputs:
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}\n"
        if output.output_type == "execute_result":
            return f"{output.data['text/plain']}\n"
    return ""


def test_each_docstring_ends_with_one_example() -> None:
    parser = doctest.DocTestParser()
    assert len(DOCSTRINGS) > 150
    for name, text in DOCSTRINGS.items():
        _, mark, example = text.rpartition("\nExample:\n")
        assert mark, name
        assert example.startswith(">>> "), name
        assert "\n\n" not in example, name
        assert not any(doctest.SKIP in prompt.options for prompt in parser.get_examples(text)), name
