"""Kernel of a notebook, and a shell."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from notebook_kernel import NotebookKernel

from healkit import Healkit
from healkit.faces import defaults
from healkit.faces.notebook import ipython_extension as extension

Run = Callable[..., nbformat.NotebookNode]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point HEALKIT_DB to a file of this test's own, and return its path."""
    path = tmp_path / "healkit.db"
    monkeypatch.setenv("HEALKIT_DB", str(path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return path


@pytest.fixture(autouse=True)
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No panel and no healing of a test goes on in this process, and it writes no file beside the tests."""
    monkeypatch.chdir(tmp_path)
    yield
    if (panels := sys.modules.get("healkit.faces.notebook.widgets.panel")) is not None:
        panels.close_all()
    assert "healkit-heal" not in [thread.name for thread in threading.enumerate()]


@pytest.fixture
def run(database: Path, notebook_kernel: NotebookKernel) -> Run:
    """Run cells in a real, stock python3 kernel, which is made new each time; the executed notebook."""

    def execute(*cells: str, allow_errors: bool = True) -> nbformat.NotebookNode:
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        return notebook_kernel.run(book, allow_errors=allow_errors)

    return execute


@pytest.fixture
def shell(database: Path) -> Iterator[Any]:
    """IPython in this process, as a terminal has it; healkit's workers outlive it, as they outlive other tests."""
    gc.freeze()  # the collections below need to look at what this test has made, and at no more
    shell = InteractiveShell.instance()
    yield shell
    if "healkit" in shell.extension_manager.loaded:
        extension.take_out(shell)
        for healkit in list(defaults._defaults.values()):
            healkit.close()
    shell.reset(new_session=False)
    shell.restore_sys_module_state()  # `__main__` among them, which multiprocessing looks at
    InteractiveShell.clear_instance()
    shell.history_manager.end_session()
    gc.collect()
    gc.unfreeze()


@pytest.fixture
def healkit(database: Path) -> Iterator[Healkit]:
    """Lend a Healkit on the same database, to look at what the notebook did."""
    with Healkit() as healkit:
        yield healkit
