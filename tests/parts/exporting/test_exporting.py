"""Notebook of a failure, which runs where there is no healkit."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from notebook_kernel import NotebookKernel

from healkit.errors import UsageInvalid

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
BROKEN = "def share(wins: int, games: int):\n    print('working')\n    return wins / games\n"
FIXED = "def share(wins: int, games: int):\n    return wins / games if games else 0.0\n"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Run a notebook file in a kernel that cannot import healkit; the executed notebook."""
    blocked = tmp_path_factory.mktemp("blocked")
    (blocked / "healkit").mkdir()
    (blocked / "healkit" / "__init__.py").write_text("raise ImportError('there is no healkit here')")
    kernel = NotebookKernel(PYTHONPATH=str(blocked), IPYTHONDIR=str(blocked / "ipython"))

    def run(file: Path):
        book = nbformat.read(file, as_version=4)
        nbformat.validate(book)
        probe = nbformat.v4.new_code_cell(
            "try:\n    import healkit\nexcept ImportError as e:\n    print(e)", id="probe"
        )
        book.cells.append(probe)
        return kernel.run(book)

    yield run
    kernel.close()


def cell_of(book, cell_id):
    return next(cell for cell in book.cells if cell.id == cell_id)


def errors_of(book):
    return {
        cell.id: [output.ename for output in cell.outputs if output.output_type == "error"]
        for cell in book.cells
        if cell.cell_type == "code" and any(output.output_type == "error" for output in cell.outputs)
    }


@pytest.mark.slow
@pytest.mark.requirement("FACE-8")
def test_a_failure_and_its_passing_replay_run_without_healkit(healkit, tmp_path, alone):
    healkit.vault.add("share", BROKEN)
    healkit.execute("share", arguments={"wins": 3, "games": 0})
    healkit.vault.patch("share", FIXED)
    healkit.execute("share", arguments={"wins": 3, "games": 0})
    failed = healkit.last_error("share")
    report = failed.to_markdown()
    for part in (
        "## share v1 failed",
        "{'wins': 3, 'games': 0}",
        "return wins / games",
        "Traceback (most",
        "Python 3",
    ):
        assert part in report
    file = failed.to_notebook(tmp_path / "out.ipynb", replay=healkit.replay_of(failed))
    saved = nbformat.read(file, as_version=4)
    failing = cell_of(saved, "failure")
    assert failing.metadata.tags == ["raises-exception"]
    assert failing.outputs[-1].evalue == "division by zero"
    assert cell_of(saved, "fixed").outputs[0].data["text/plain"] == "0.0"
    about = cell_of(saved, "about").source
    assert "`games` is `0`, so the code divides by zero." in about
    book = alone(file)
    assert "there is no healkit here" in cell_of(book, "probe").outputs[0].text
    assert errors_of(book) == {"failure": ["ZeroDivisionError"]}
    assert cell_of(book, "fixed").outputs[0].data["text/plain"] == "0.0"


@pytest.mark.slow
@pytest.mark.requirement("FACE-8")
def test_every_kind_of_tool_fails_again_as_it_did(healkit, tmp_path, alone):
    kinds = {
        "by_dict": "def by_dict(arguments):\n    return arguments['x'] / 0\n",
        "by_class": "class ByClassTool(Tool):\n    def run(self, arguments):\n        return arguments['x'] / 0\n",
        "by_script": "result = arguments['x'] / 0\n",
        "by_await": "async def by_await(x):\n    return x / 0\n",
        "at_import": "LIMIT = 1 / 0\ndef at_import(x):\n    return x\n",
        "by_bridge": "def by_bridge(x):\n    trace.decision('size', 'small')\n    return mcp.host.rate(x) / mcp.host.rate(0)\n",
    }

    def rate(n: int) -> int:
        """Return the rate."""
        return n

    healkit.provide(rate)
    for name, code in kinds.items():
        healkit.vault.add(name, code)
        failed = healkit.execute(name, arguments={"x": 3})
        assert failed.failure is not None
        assert failed.failure.ename == "ZeroDivisionError", failed.to_text()
        book = alone(failed.to_notebook(tmp_path / f"{name}.ipynb"))
        assert errors_of(book) == {"failure": ["ZeroDivisionError"]}, name


@pytest.mark.slow
@pytest.mark.requirement("FACE-8")
def test_what_never_ends_is_not_run_again(healkit, tmp_path, alone):
    healkit.vault.add("spin", "def spin():\n    while True:\n        pass\n")
    failed = healkit.execute("spin", timeout=0.5)
    book = alone(failed.to_notebook(tmp_path / "spin.ipynb"))
    cell = cell_of(book, "failure")
    assert cell.metadata.tags == ["skip-execution"]
    assert cell.outputs[-1].ename == "TimeoutError"
    assert "TOOL_TIMEOUT" in cell_of(book, "failure-text").source


@pytest.mark.requirement("FACE-8", "TRACE-3")
def test_secrets_leave_neither_in_the_notebook_nor_in_the_report(healkit, tmp_path):
    code = (
        f"def leak(key: str):\n    token = '{SECRET}'\n    print(token)\n    raise ValueError(token + key)\n"
    )
    healkit.vault.add("leak", code)
    healkit.execute("leak", arguments={"key": SECRET})
    failed = healkit.last_error("leak")
    book = failed.to_notebook(tmp_path / "leak.ipynb").read_text()
    report = failed.to_markdown()
    for text in (book, report):
        assert SECRET not in text
        assert "hidden: secrets and personal data" in text


def test_a_fence_is_longer_than_any_in_the_text(healkit):
    healkit.vault.add("fenced", "def fenced():\n    raise ValueError('```\\n````')\n")
    assert "`````text" in healkit.execute("fenced").to_markdown()


def test_a_file_is_not_written_over_and_a_success_is_not_written(healkit, tmp_path):
    healkit.vault.add("share", BROKEN)
    failed = healkit.execute("share", arguments={"wins": 1, "games": 0})
    (tmp_path / "there.ipynb").write_text("mine")
    with pytest.raises(UsageInvalid, match="already exists"):
        failed.to_notebook(tmp_path / "there.ipynb")
    assert failed.to_notebook(tmp_path / "there.ipynb", overwrite=True).stat().st_size > 100
    with pytest.raises(UsageInvalid, match="did not fail"):
        healkit.execute("share", arguments={"wins": 1, "games": 1}).to_notebook(tmp_path / "ok.ipynb")
    with pytest.raises(UsageInvalid, match="Cannot write"):
        failed.to_notebook(tmp_path / "no_folder" / "x.ipynb")


def test_the_notebook_has_the_error_of_an_sql_tool(healkit, tmp_path):
    healkit.vault.add("rows", "SELECT * FROM nothing_there", type="sql")
    book = json.loads(healkit.execute("rows").to_notebook(tmp_path / "sql.ipynb").read_text())
    assert "nothing_there" in json.dumps(book)


@pytest.mark.slow
@pytest.mark.requirement("FACE-8", "DATA-3")
def test_frames_come_along_as_code_and_as_files_without_secrets(healkit, tmp_path, alone):
    code = "def broken(small, large, cube):\n    return large['amount'].sum() + small['missing'].sum() + cube.sum()\n"
    healkit.vault.add("broken", code)
    large = pd.DataFrame({"amount": np.arange(500.0), "password": "hunter2"})
    arguments = {"small": pd.DataFrame({"a": [1, 2]}), "large": large, "cube": np.ones((10, 10, 10))}
    healkit.execute("broken", arguments=arguments)
    file = healkit.last_error("broken").to_notebook(tmp_path / "out.ipynb")
    assert sorted(one.name for one in (tmp_path / "out_data").iterdir()) == ["1_large.parquet", "2_cube.npy"]
    assert set(pd.read_parquet(tmp_path / "out_data" / "1_large.parquet")["password"]) == {"(hidden)"}
    saved = nbformat.read(file, as_version=4)
    assert "pd.DataFrame({'a': [1, 2]})" in cell_of(saved, "arguments").source
    saved.cells.insert(0, nbformat.v4.new_code_cell(f"import os\nos.chdir({str(tmp_path)!r})", id="place"))
    nbformat.write(saved, file)
    assert errors_of(alone(file)) == {"failure": ["KeyError"]}
