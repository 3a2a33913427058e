"""A notebook's kernel, and a shell in this process; both on a database of their own."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

from healkit import Healkit

Run = Callable[..., nbformat.NotebookNode]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where HEALKIT_DB points."""
    path = tmp_path / "healkit.db"
    monkeypatch.setenv("HEALKIT_DB", str(path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return path


@pytest.fixture
def run(database: Path) -> Run:
    """Run cells in a real, stock python3 kernel; the executed notebook."""

    def execute(*cells: str, allow_errors: bool = True) -> nbformat.NotebookNode:
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        NotebookClient(book, kernel_name="python3", timeout=60, allow_errors=allow_errors).execute()
        return book

    return execute


@pytest.fixture
def shell(database: Path) -> Iterator[Any]:
    """IPython in this process, as a terminal has it."""
    shell = InteractiveShell.instance()
    yield shell
    shell.run_line_magic("unload_ext", "healkit") if "healkit" in shell.extension_manager.loaded else None
    shell.reset(new_session=False)
    InteractiveShell.clear_instance()
    shell.history_manager.end_session()
    gc.collect()


@pytest.fixture
def healkit(database: Path) -> Iterator[Healkit]:
    """A Healkit on the same database, to look at what the notebook did."""
    with Healkit() as healkit:
        yield healkit
