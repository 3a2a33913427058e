"""Exporting from the command line and from a notebook."""

from __future__ import annotations

import nbformat
import pytest
from cli_samples import call

from healkit import Healkit


@pytest.mark.requirement("FACE-8", "FACE-6")
def test_the_command_line_writes_and_prints_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HEALKIT_DB", str(tmp_path / "healkit.db"))
    with Healkit(tmp_path / "healkit.db") as healkit:
        healkit.vault.add("half", "def half(n: int):\n    return n / 0\n")
        healkit.execute("half", arguments={"n": 3})

    def run(*words):
        return call("errors", *words)

    file = tmp_path / "half.ipynb"
    assert run("half", "--notebook", str(file)).returncode == 0
    assert nbformat.read(file, as_version=4).cells[0].source.startswith("# half v1 failed")
    assert "already exists" in run("half", "--notebook", str(file)).stderr
    assert "## half v1 failed" in run("--markdown").stdout
    assert "why        " in run("--last").stdout


@pytest.mark.slow
@pytest.mark.requirement("FACE-8", "FACE-7")
def test_a_notebook_writes_its_own_failing_cell_with_what_it_read(notebook_kernel, tmp_path, monkeypatch):
    monkeypatch.setenv("HEALKIT_DB", str(tmp_path / "healkit.db"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    sources = [
        "%load_ext healkit", "prices = {'apple': 3}", "2 * prices['pear']", "%trace_last_error --notebook cell.ipynb",
        "%trace_last_error --markdown",
    ]  # fmt: skip
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook_kernel.run(book, tmp_path, allow_errors=True)
    assert "KeyError: 'pear'" in book.cells[4].outputs[0].data["text/plain"]
    written = nbformat.read(tmp_path / "cell.ipynb", as_version=4)
    again = notebook_kernel.run(written)
    (failing,) = [cell for cell in again.cells if cell.id == "failure"]
    assert failing.outputs[0].ename == "KeyError"
