"""`healkit map`: a tool for each row of a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from waiting import WITHIN_S, wait_until

from healkit import Healkit

pytestmark = pytest.mark.requirement("SCALE-4")

INVERSE = "def inverse(n: int):\n    return {'inverse': 1 / n}\n"


@pytest.fixture
def rows(cli: Any, tmp_path: Path) -> Path:
    assert cli("vault", "add", "inverse", "-", stdin=INVERSE).returncode == 0
    file = tmp_path / "rows.csv"
    file.write_text("n\n1\n0\n4\n")
    return file


def test_results_are_shown_and_written(cli: Any, rows: Path, tmp_path: Path) -> None:
    done = cli("map", "inverse", str(rows), "--out", "results.jsonl")
    assert done.returncode == 1
    assert "inverse v1: 2 inputs returned, 1 failed" in done.stdout
    assert "ZeroDivisionError: division by zero" in done.stdout
    assert "Next: healkit heal inverse --log-id " in done.stderr
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [(line["n"], line["status"], line["result"]) for line in lines] == [
        (1, "SUCCESS", {"inverse": 1.0}), (0, "FAILURE", None), (4, "SUCCESS", {"inverse": 0.25}),
    ]  # fmt: skip
    told = json.loads(cli("map", "inverse", str(rows), "--json").stdout)
    assert (told["done"], told["failed"], told["failures"][0]["count"]) == (3, 1, 1)
    for name, read in (("results.csv", pd.read_csv), ("results.parquet", pd.read_parquet)):
        cli("map", "inverse", str(rows), "--out", name)
        frame = read(tmp_path / name)
        assert json.loads(frame["result"][0]) == {"inverse": 1.0}
        assert list(frame["status"]) == ["SUCCESS", "FAILURE", "SUCCESS"]


def test_a_map_goes_on_by_its_id(cli: Any, rows: Path) -> None:
    run_id = json.loads(cli("map", "inverse", str(rows), "--json").stdout)["run_id"]
    again = json.loads(cli("map", "inverse", str(rows), "--json", "--run-id", run_id).stdout)
    assert (again["earlier"], again["done"]) == (3, 3)


def test_wrong_words_are_refused(cli: Any, rows: Path, tmp_path: Path) -> None:
    for words, said in (
        (("inverse", "missing.csv"), "cannot be read"),
        (("invers", str(rows)), "inverse"),
        (("inverse@1", str(rows)), "active revision"),
        (("inverse", str(rows), "--out", str(rows)), "Choose a new"),
        (("inverse", str(rows), "--out", "a.xlsx"), "Choose a new"),
        (("inverse", str(rows), "--run-id", "map-x"), "not the id"),
        (("inverse", str(rows), "--parallel", "0"), "--parallel"),
    ):
        done = cli("map", *words)
        assert done.returncode == 2, (words, done)
        assert said in done.stderr


@pytest.mark.slow
def test_ctrl_c_leaves_a_map_that_goes_on(
    cli: Any, rows: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    slow = "import time\ndef slow(n: int):\n    time.sleep(0.1)\n    return n\n"
    cli("vault", "add", "slow", "-", stdin=slow)
    (tmp_path / "many.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(100)))
    command = [
        sys.executable,
        "-m",
        "healkit",
        "map",
        "slow",
        "many.jsonl",
        "--db",
        environment["HEALKIT_DB"],
    ]
    process = subprocess.Popen(
        command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with Healkit(environment["HEALKIT_DB"]) as healkit:
        wait_until(lambda: healkit.log.count(tool="slow", status="SUCCESS") > 5)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130
    (line,) = [line for line in said.splitlines() if "--run-id" in line]
    words = line.partition("healkit ")[2].split()
    assert words[-2:] == ["--db", environment["HEALKIT_DB"]]
    done = cli(*words)
    assert done.returncode == 0, done
    assert "100 inputs returned, 0 failed" in done.stdout
