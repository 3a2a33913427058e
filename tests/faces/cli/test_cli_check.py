"""Command that checks notebooks, with real kernels."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from cli_samples import Done
from processes import found_below
from waiting import WITHIN_S, wait_until

Cli = Callable[..., Done]

FRAME = "import pandas as pd\norders = pd.DataFrame({'region': ['a', 'b'], 'revenue': [1.5, 2.5]})"
TOTAL = "# of all regions\ntotal = orders['revnue'].sum()\ntotal"
FIXED = TOTAL.replace("revnue", "revenue")


def cell(source: str, count: int | None = None, **more: Any) -> dict[str, Any]:
    """Return a code cell as a file has it."""
    about = {
        "execution_count": count,
        "metadata": {},
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }
    return {"cell_type": "code", **about, **more}


def book(folder: Path, *cells: str | dict[str, Any], name: str = "book.ipynb", **more: Any) -> str:
    """Write a notebook; return its name."""
    content = {
        "cells": [cell(one) if isinstance(one, str) else one for one in cells],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    (folder / name).write_text(json.dumps(content | more, indent=1, ensure_ascii=False) + "\n")
    return name


def told(done: Done) -> dict[str, Any]:
    """Return the report of the one notebook in JSON."""
    (report,) = json.loads(done.stdout)["notebooks"]
    return dict(report)


def failures_of(done: Done) -> list[tuple[int, int, str]]:
    """Return cell, line and exception of each failure."""
    return [(one["number"], one["line"], one["failure"]["ename"]) for one in told(done)["failures"]]


@pytest.mark.requirement("FACE-13")
def test_a_notebook_that_runs_passes_and_is_left_as_it_is(cli: Cli, tmp_path: Path) -> None:
    name = book(tmp_path, {"cell_type": "markdown", "metadata": {}, "source": ["# A"]}, "x = 1", "", "x + 1")
    before = (tmp_path / name).read_bytes()
    done = cli("check", name)
    assert re.fullmatch(r"✓ book\.ipynb: every cell ran \(2 of 2 cells, [\d.]+ m?s\)\n", done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / name).read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {name}  # no database either


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_a_failing_cell_is_healed_on_screen_and_only_there(cli: Cli, tmp_path: Path) -> None:
    name = book(tmp_path, FRAME, TOTAL, "print(total)")
    before = (tmp_path / name).read_bytes()
    done = cli("check", name, "--heal")
    assert done.returncode == 1
    assert done.stdout.startswith("✗ book.ipynb: fails; with the fix, every cell ran (3 of 3 cells, ")
    assert "cell 2 (In [2]), line 2: KeyError: 'revnue'" in done.stdout
    assert "'orders' has no column 'revnue'" in done.stdout
    assert "-total = orders['revnue'].sum()\n" in done.stdout
    assert "+total = orders['revenue'].sum()\n" in done.stdout
    assert "Runs, and gives 4.0" in done.stdout
    assert "In a complete run, the notebook got further with it." in done.stdout
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_a_written_fix_changes_the_text_of_its_cell_and_no_other_byte(cli: Cli, tmp_path: Path) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": ["4.0 é\n"]}
    cells = [
        cell(FRAME, 1),
        cell(TOTAL, 2),
        cell("print(total)", 3, outputs=[output], metadata={"tags": ["é"]}),
    ]
    path = tmp_path / book(tmp_path, *cells)
    path.write_text(json.dumps(json.loads(path.read_text()), ensure_ascii=True))
    path.chmod(0o640)
    before = path.read_text()
    done = cli("check", path.name, "--apply")
    assert done.returncode == 0
    assert done.stdout.startswith("✓ book.ipynb: fixed; every cell ran")
    assert path.read_text() == before.replace("revnue", "revenue")
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name]


@pytest.mark.slow
def test_without_healing_the_first_failure_is_explained_and_the_rest_is_not_run(
    cli: Cli, tmp_path: Path
) -> None:
    done = cli("check", book(tmp_path, FRAME, TOTAL, "1 / 0"), "--json")
    report = told(done)
    assert (done.returncode, report["outcome"], report["cells_run"]) == (1, "failed", 1)
    assert [one["state"] for one in report["cells"]] == ["passed", "failed", "not_run"]
    (failure,) = report["failures"]
    assert (failure["prompt"], failure["report"]) == (2, None)
    assert failure["explanation"].startswith("`orders` has no column `'revnue'`")
    assert report["edits"] == []


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_mistakes_in_two_cells_are_found_one_after_the_other(cli: Cli, tmp_path: Path) -> None:
    name = book(tmp_path, FRAME, TOTAL, "label = 'sum: ' + total\nlabel", "label.uper()")
    done = cli("check", name, "--heal", "--json")
    report = told(done)
    assert failures_of(done) == [(2, 2, "KeyError"), (3, 1, "TypeError"), (4, 1, "AttributeError")], (
        done.stdout
    )
    assert report["outcome"] == "healed"
    assert [edit["number"] for edit in report["edits"]] == [2, 3, 4]
    assert all(one["fixed"] for one in report["failures"])


@pytest.mark.slow
def test_a_failure_that_has_no_fix_ends_the_check_and_earlier_fixes_are_written(
    cli: Cli, tmp_path: Path
) -> None:
    name = book(tmp_path, FRAME, TOTAL, "raise RuntimeError('no')", "1")
    done = cli("check", name, "--apply", "--json")
    report = told(done)
    assert (done.returncode, report["outcome"], report["written"]) == (1, "failed", True)
    assert [one["fixed"] for one in report["failures"]] == [True, False]
    assert cell(FIXED)["source"] == json.loads((tmp_path / name).read_text())["cells"][1]["source"]


@pytest.mark.slow
def test_two_mistakes_in_one_cell_are_fixed_together(cli: Cli, tmp_path: Path) -> None:
    name = book(tmp_path, FRAME, "a = orders['revnue'].sum()\nb = orders['regin'].nunique()\na, b")
    done = cli("check", name, "--apply")
    assert done.returncode == 0, done.stdout
    assert cli("check", name).returncode == 0


@pytest.mark.slow
def test_a_syntax_error_is_read_as_it_was_meant(cli: Cli, tmp_path: Path) -> None:
    name = book(tmp_path, "rows = [1]", "print('a'\nlen(rows)")
    done = cli("check", name, "--apply", "--json")
    assert done.returncode == 0, done.stdout
    assert failures_of(done) == [(2, 1, "SyntaxError")]
    assert "print('a')\\n" in (tmp_path / name).read_text()


@pytest.mark.slow
def test_the_fix_of_a_broken_function_is_in_the_cell_that_defines_it(cli: Cli, tmp_path: Path) -> None:
    function = "def by(frame):\n    return frame.groupby('region')['revnue'].sum()"
    name = book(tmp_path, FRAME, function, "sums = by(orders)\nsums")
    done = cli("check", name, "--heal", "--json")
    report = told(done)
    assert failures_of(done) == [(3, 1, "KeyError")]
    assert (report["outcome"], [edit["number"] for edit in report["edits"]]) == ("healed", [2])


@pytest.mark.slow
def test_a_value_that_cannot_leave_the_kernel_is_made_again_for_healing(cli: Cli, tmp_path: Path) -> None:
    lines = "import sqlite3\nbase = sqlite3.connect(':memory:')\nbase.execute('create table t (total int)')"
    name = book(
        tmp_path,
        lines,
        "rows = {'total': 1}",
        "n = len(list(base.execute('select * from t')))\nrows['totl'] + n",
    )
    done = cli("check", name, "--heal", "--json")
    report = told(done)
    assert report["outcome"] == "healed", done.stdout
    assert report["failures"][0]["report"]["fix"]["gave"] == "1"


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_check_first_reports_names_that_a_later_cell_defines(cli: Cli, tmp_path: Path) -> None:
    name = book(
        tmp_path, "print(price)", {"cell_type": "markdown", "metadata": {}, "source": "x"}, "price = 3"
    )
    done = cli("check", name, "--heal")
    assert done.returncode == 1
    assert "'price' is defined further down, in cell 3" in done.stdout
    assert "Cell 1 reads 'price', which cell 3 (price = 3) defines." in done.stdout
    assert "fix " not in done.stdout


def test_remarks_magics_await_and_a_cell_that_may_fail(cli: Cli, tmp_path: Path) -> None:
    """Prompts out of order are remarked; cells run as in a notebook."""
    allowed = cell("1 / 0", metadata={"tags": ["raises-exception"]})
    awaited = "import asyncio\nawait asyncio.sleep(0)\nawaited = 1"
    name = book(
        tmp_path, cell("%time x = 1", 4), cell("%%capture out\nprint(x)", 2), awaited, allowed, "awaited + x"
    )
    done = cli("check", name)
    assert done.returncode == 0, done.stdout
    assert "Cell 2 (In [2]) was run before cell 1 (In [4]) above it." in done.stdout
    assert "Cell 3 was not run before it was saved." in done.stdout


@pytest.mark.slow
def test_an_endless_cell_is_interrupted_and_its_line_reported(cli: Cli, tmp_path: Path) -> None:
    name = book(tmp_path, "x = 1\nwhile True:\n    x += 1", "2")
    done = cli("check", name, "--timeout", "2", "--heal", "--json")
    (failure,) = told(done)["failures"]
    assert failure["failure"]["code"] == "TOOL_TIMEOUT"
    assert failure["line"] in (2, 3)
    assert failure["explanation"] == "The cell was still running after 2 s."


@pytest.mark.slow
def test_a_cell_that_cannot_be_interrupted_is_ended_with_its_kernel(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", book(tmp_path, "sum(range(10**13))"), "--timeout", "1", "--json")
    assert done.returncode == 1
    assert failures_of(done) == [(1, 0, "TimeoutError")]


@pytest.mark.slow
def test_a_cell_that_ends_its_kernel_is_named(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", book(tmp_path, "1", "import os\nos._exit(3)", "2"), "--heal")
    assert done.returncode == 1
    assert "cell 2 (In [2]): DeadKernel: the kernel ended while the cell ran (exit status 3)" in done.stdout


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_a_file_beside_the_notebook_is_read_and_nothing_else_is(
    cli: Cli, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "data.txt"
    other.write_text("1")
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    name = book(tmp_path, "import pandas as pd\nframe = pd.read_csv('data.csv')", "frame['a'].sum()")
    assert cli("check", name).returncode == 0
    for code in (
        f"open({str(other)!r}).read()",
        "open('new.txt', 'w')",
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1')",
    ):
        done = cli("check", book(tmp_path, code), "--json")
        assert done.returncode == 1
        assert "have no network, start no programs" in done.stdout or "FileNotFoundError" in done.stdout
        assert failures_of(done)[0][2].rpartition(".")[2] in (
            "PermissionError",
            "FileNotFoundError",
            "OSError",
            "URLError",
        )
    assert (
        cli("check", book(tmp_path, f"open({str(other)!r}).read()"), "--read", str(other.parent)).returncode
        == 0
    )


@pytest.mark.slow
def test_healing_reads_no_file_that_the_notebook_could_not(
    cli: Cli, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "secret.txt"
    other.write_text("hidden words")
    code = f"rows = {{'total': 1}}\ntry:\n    x = open({str(other)!r}).read()\nexcept OSError:\n    x = ''\nrows['totl'], x"
    done = cli("check", book(tmp_path, code), "--heal")
    assert "Runs, and gives (1, '')" in done.stdout, done.stdout
    assert "hidden words" not in done.stdout


TAMPERED = """
import json, os
from healkit.parts.cells import cell_export
honest = cell_export.write_failing_cell
rows = [1]

def tampered(folder, **options):
    honest(folder, **options)
    file = os.path.join(folder, 'cell.json')
    {how}

cell_export.write_failing_cell = tampered
"""


@pytest.mark.slow
def test_what_a_hostile_kernel_leaves_for_the_host_is_not_believed(cli: Cli, tmp_path: Path) -> None:
    """The other ways of tampering are in `parts/cells/test_cell_export.py`."""
    how = "os.remove(file); os.symlink('/etc/passwd', file)"
    done = cli("check", book(tmp_path, TAMPERED.format(how=how), "rows.appendd(2)"), "--heal", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    assert failures_of(done)[0][2] == "AttributeError"
    assert told(done)["failures"][0]["report"] is None
    assert "root:" not in done.stdout


@pytest.mark.slow
def test_a_kernel_that_fills_the_folder_of_the_host_is_ended(cli: Cli, tmp_path: Path) -> None:
    code = """
from healkit.parts.cells import cell_export

def fill(folder, **options):
    for number in range(1000):
        open(f'{folder}/{number}', 'wb').write(bytes(100_000_000))

cell_export.write_failing_cell = fill
rows = [1]
"""
    done = cli("check", book(tmp_path, code, "rows.appendd(2)"), "--heal", "--json")
    (failure,) = told(done)["failures"]
    assert (failure["failure"]["ename"], failure["report"]) == ("AttributeError", None)


HOSTILE = "text = '\\x1b[2J::error file=x,line=1::hacked\\n::error::hacked\\n##[error]hacked'\nraise ValueError(text)"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "github", "junit", "json"])
def test_a_hostile_text_gives_no_orders(cli: Cli, tmp_path: Path, form: str) -> None:
    name = book(tmp_path, "'''\n::error file=y::of a cell\n'''\nx = {'total': 1}\n" + HOSTILE)
    done = cli("check", name, "--heal", "--format", form)
    lines = [line for line in done.stdout.splitlines() if re.match(r"\s*::|.*##\[", line)]
    assert "\x1b" not in done.stdout + done.stderr
    if form == "github":
        assert [line[: line.index(",")] for line in lines] == ["::error file=book.ipynb"]
    elif form != "json":
        assert [line for line in lines if not (form == "junit" and "##" in line)] == []


@pytest.mark.requirement("FACE-13")
def test_an_annotation_names_the_line_of_the_file(cli: Cli, tmp_path: Path) -> None:
    name = book(tmp_path, "x = 1", "y = 2\nz = y / (x - 1)  # 100%, a:b\n", name="a,b.ipynb")
    done = cli("check", name, "--format", "github")
    lines = (tmp_path / name).read_text().splitlines()
    place = next(n for n, line in enumerate(lines, 1) if "100%" in line)
    title = "cell 2 (In [2])%2C line 2%3A ZeroDivisionError%3A division by zero"
    assert done.stdout.startswith(f"::error file=a%2Cb.ipynb,line={place},title={title}::")
    assert "100%25, a:b%0A" in done.stdout
    assert done.stdout.count("\n") == 1


@pytest.mark.requirement("FACE-13")
def test_junit_has_a_suite_for_each_notebook_and_a_case_for_each_cell(cli: Cli, tmp_path: Path) -> None:
    book(tmp_path, "1", name="good.ipynb")
    book(tmp_path, "1", "[][0]", "2", name="bad.ipynb")
    done = cli("check", "good.ipynb", "bad.ipynb", "--format", "junit")
    assert done.returncode == 1
    good, bad = ET.fromstring(done.stdout)
    assert (good.get("name"), good.get("tests"), good.get("failures")) == ("good.ipynb", "1", "0")
    assert (bad.get("tests"), bad.get("failures"), bad.get("skipped")) == ("3", "1", "1")
    _, failing, skipped = bad
    failure = failing.find("failure")
    assert (failing.get("name"), skipped.get("name")) == ("cell 2", "cell 3")
    assert failure is not None
    assert failure.get("type") == "IndexError"
    assert float(bad[0].get("time", "")) > 0


NO_NOTEBOOKS = {
    None: "cannot be read: no such file or directory.",
    "": "is not a notebook.",
    "{}": "is not a notebook.",
    "[1, 2": "is not a notebook.",
    '{"nbformat": 4, "cells": [{"cell_type": "code"}]}': "is not a notebook.",
    '{"nbformat": 3, "worksheets": []}': "is in format 3 of notebooks, not 4.",
    '{"nbformat": 4, "cells": [], "metadata": {"language_info": {"name": "R"}}}': (
        "is a notebook of 'r', but healkit only runs Python."
    ),
    "\udcff": "is not a notebook.",
}


def test_an_invalid_notebook_is_one_error_before_anything_runs(cli: Cli, tmp_path: Path) -> None:
    book(tmp_path, "1 / 0", name="other.ipynb")
    for content, why in NO_NOTEBOOKS.items():
        if content is not None:
            (tmp_path / "book.ipynb").write_text(content, errors="surrogateescape")
        done = cli("check", "other.ipynb", "book.ipynb")
        assert (done.returncode, done.stdout) == (2, ""), content
        assert done.stderr.startswith(f"'book.ipynb' {why}"), content


def test_a_notebook_without_code_cells_passes(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", book(tmp_path, {"cell_type": "markdown", "metadata": {}, "source": "# A"}))
    assert done.returncode == 0
    assert "0 of 0 cells" in done.stdout


def test_a_wrong_call_runs_nothing(cli: Cli, tmp_path: Path) -> None:
    name = book(tmp_path, "1")
    wrong = {
        ("--timeout", "0"): "timeout=0",
        ("--read", "/nowhere"): "'/nowhere' names nothing",
        ("--format", "pdf"): "pdf",
    }
    for words, why in wrong.items():
        done = cli("check", name, *words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert why in done.stderr


def test_a_machine_without_a_boundary_runs_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALKIT_ISOLATION", "process")
    done = cli("check", book(tmp_path, "1"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a boundary" in done.stderr


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_ctrl_c_ends_the_check_and_leaves_no_process(environment: dict[str, str], tmp_path: Path) -> None:
    name = book(tmp_path, "import time\nwhile True:\n    time.sleep(1)")
    command = [sys.executable, "-m", "healkit", "check", name]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: found_below("healkit.core.workers.inside", process.pid))
        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        said, told_ = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, said, told_) == (130, "", "Stopped.\n")
    assert psutil.wait_procs(below, timeout=10)[1] == []
    assert os.listdir(tmp_path) == [name]
