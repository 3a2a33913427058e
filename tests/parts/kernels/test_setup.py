"""`healkit setup`: healkit in every notebook, and out again.

Real kernels run what it wrote, below an IPython folder of the test's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from cli_samples import Done, call
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from waiting import WITHIN_S

LOADED = "print('healkit' in get_ipython().extension_manager.loaded)"


def setup(*words: str) -> Done:
    """Run the command as a user does."""
    return call("setup", *words)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Name the file that it writes."""
    return tmp_path / "ipython" / "profile_default" / "startup" / "50-healkit.py"


def everything(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def printed(*cells: str, kernel: str = "python3") -> str:
    """Run the cells in a notebook of their own, and return what they print."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(book, timeout=WITHIN_S, kernel_name=kernel).execute()
    outputs: Iterator[Any] = (output for cell in book.cells for output in cell.outputs)
    return "".join(output.text for output in outputs)


@pytest.mark.requirement("FACE-1")
def test_every_notebook_has_healkit_after_it_and_none_once_it_is_taken_back(file: Path) -> None:
    assert printed(LOADED) == "False\n"
    before = everything(file.parents[2])
    done = setup()
    assert done.returncode == 0, done.stderr
    assert f"Written: {file}" in done.stdout
    names = "print([name for name in ('healkit', 'importlib', 'file') if name in globals()])"
    magic = "print(get_ipython().find_line_magic('vault') is not None)"
    by_itself = (
        "%load_ext healkit\n" + LOADED,
        "%unload_ext healkit",
        LOADED,
    )  # a notebook that loads it still can
    cells = printed(LOADED, magic, names, "%who", *by_itself)
    assert cells.startswith("True\nTrue\n[]\nInteractive namespace is empty.\n")
    assert cells.endswith("True\nFalse\n")
    assert f"Removed: {file}" in setup("--remove").stdout
    after = everything(file.parents[2])
    assert {path for path in after if "history" not in path} == {
        path for path in before if "history" not in path
    }


def test_a_terminal_of_ipython_stays_as_it_is(file: Path) -> None:
    setup()
    words = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", LOADED]
    done = subprocess.run(words, capture_output=True, text=True, timeout=WITHIN_S, check=True)
    assert done.stdout == "False\n"


def test_twice_is_once(file: Path) -> None:
    first = json.loads(setup("--json").stdout)
    assert first == {"path": str(file), "loads": True, "changed": True}
    text = file.read_text()
    assert json.loads(setup("--json").stdout) == {**first, "changed": False}
    assert file.read_text() == text
    assert json.loads(setup("--remove", "--json").stdout) == {**first, "loads": False}
    assert json.loads(setup("--remove", "--json").stdout) == {**first, "loads": False, "changed": False}
    assert list(file.parents[2].iterdir()) == []  # IPython makes the outer folder itself


@pytest.mark.requirement("TRUST-1")
def test_each_environment_is_named_by_its_own_setup_and_no_other_is_loaded(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, gone = tmp_path / "other.py", tmp_path / "gone.py"
    other.touch()
    monkeypatch.setattr("healkit.faces.cli.setup._OWN", str(gone))
    setup()
    monkeypatch.setattr("healkit.faces.cli.setup._OWN", str(other))
    setup()
    assert str(gone) not in file.read_text()
    assert printed(LOADED) == "False\n"
    monkeypatch.undo()
    monkeypatch.setenv("IPYTHONDIR", str(file.parents[2]))
    assert json.loads(setup("--json").stdout)["changed"]
    assert str(other) in file.read_text()


#: What was written before installations were named.
UNNAMED = """\
# Loads healkit in each notebook whose kernel has it. Written by `healkit setup`, deleted by `healkit setup --remove`.
if hasattr(get_ipython(), "kernel") and __import__("importlib.util").util.find_spec("healkit"):
    get_ipython().run_cell("%load_ext healkit", silent=True)
"""


@pytest.mark.requirement("TRUST-1")
def test_the_file_that_loaded_whatever_is_called_healkit_is_replaced_or_removed(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(UNNAMED)
    assert json.loads(setup("--json").stdout)["changed"]
    assert file.read_text() != UNNAMED
    file.write_text(UNNAMED)
    assert f"Removed: {file}" in setup("--remove").stdout


@pytest.mark.parametrize("words", [(), ("--remove",)], ids=["setup", "remove"])
def test_what_you_have_written_there_is_left_as_it_is(file: Path, words: tuple[str, ...]) -> None:
    setup()
    file.write_text(file.read_text() + "print('mine')\n")
    mine = file.read_text()
    done = setup(*words)
    assert done.returncode == 2
    assert str(file) in done.stderr
    assert file.read_text() == mine


def test_the_rest_of_the_profile_is_left_as_it_is(file: Path) -> None:
    file.parent.mkdir(parents=True)
    (file.parent / "10-mine.py").write_text("mine = 1\n")
    (file.parents[1] / "ipython_kernel_config.py").write_text(
        "c.InteractiveShellApp.exec_lines = ['more = 2']\n"
    )
    before = everything(file.parents[2])
    setup()
    assert printed(LOADED, "print(mine, more)") == "True\n1 2\n"
    setup("--remove")
    after = everything(file.parents[2])
    assert {path: after[path] for path in before} == before
    assert not file.exists()


def test_another_profile_gets_it_and_one_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = setup("--profile", "lecture")
    assert done.returncode == 2
    assert "There is no IPython profile 'lecture'" in done.stderr
    (tmp_path / "ipython" / "profile_lecture").mkdir(parents=True)
    assert setup("--profile", "lecture").returncode == 0
    assert (tmp_path / "ipython/profile_lecture/startup/50-healkit.py").is_file()
    assert not (tmp_path / "ipython/profile_default").exists()


def test_setup_reports_an_ipython_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "ipython").write_text("a file in its place, which also root cannot write into")
    done = setup()
    assert done.returncode == 2
    assert "IPYTHONDIR" in done.stderr


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Make an environment with all packages of this one but healkit; return its folder of packages.

    Its kernel is called "elsewhere".
    """
    folder = tmp_path / "elsewhere"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], timeout=WITHIN_S, check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if "healkit" not in package.name and package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    spec = tmp_path / "data" / "kernels" / "elsewhere"
    spec.mkdir(parents=True)
    argv = [str(folder / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "elsewhere", "language": "python"})
    )
    return packages


@pytest.mark.slow
def test_a_kernel_whose_healkit_is_missing_or_broken_runs_as_before(
    file: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(elsewhere)
    setup()
    (file.parent / "60-mine.py").write_text("mine = 1\n")  # IPython runs no file after one that raises
    cells = (LOADED, "import sys; print(mine, 'healkit' in sys.modules)")
    assert printed(*cells, kernel="elsewhere") == "False\n1 False\n"
    (elsewhere / "healkit.py").write_text("raise RuntimeError('an old one')")
    assert printed(*cells, kernel="elsewhere") == "False\n1 False\n"
    with pytest.raises(
        CellExecutionError, match="an old one"
    ):  # the error appears where you load the extension
        printed("%load_ext healkit", kernel="elsewhere")
