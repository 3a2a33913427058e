"""Docs pages on the collector and OpenTelemetry run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from healkit.errors import REQUEST_CODES
from healkit.parts.traces.contract import _TASK_NAMES, _TRACE_NAMES, ExecutionTrace, TraceFault, read_batch

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "collector.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.requirement("TRACE-4")
def test_the_docs_page_runs(tmp_path: Path) -> None:
    start, ask = (block for kind, block in BLOCKS if kind == "sh")
    (send,) = (block for kind, block in BLOCKS if kind == "python")
    (tmp_path / "send.py").write_text(send)
    started = start.replace("--db", "2> started.txt --db")
    script = f"""{started}
trap 'kill $!; wait' EXIT
until grep -q 'Collecting traces' started.txt; do sleep 0.05; done
python -W error send.py
{ask}"""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": str(tmp_path)}
    # Another test, or another user, may have the port that the page names.
    script = script.replace("8008", str(free_port()))
    (tmp_path / "send.py").write_text(send.replace("8008", re.findall(r"--port (\d+)", script)[0]))
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    receipt, page = done.stdout.partition('{"traces"')[0], '{"traces"' + done.stdout.partition('{"traces"')[2]
    assert json.loads(receipt) == {"received": 1, "stored": 1, "errors": []}
    failed = json.loads(page.splitlines()[0])
    assert [each["metadata"]["arguments"] for each in failed["traces"]] == [{"net": 100}]


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_every_code_of_a_refusal_is_on_the_page() -> None:
    missing = {code for code in REQUEST_CODES if f"`{code}`" not in PAGE}
    assert missing <= {"NOT_FOUND", "METHOD_NOT_ALLOWED", "INTERNAL"}
    for code, status in REQUEST_CODES.items():
        if code not in missing:
            assert re.search(rf"^\| [^|]*\b{status}\b[^|]*\| [^|]*`{code}`", PAGE, re.MULTILINE), code


@pytest.mark.requirement("TRACE-4")
def test_the_shortest_trace_on_the_page_is_taken_and_no_field_of_it_can_be_spared() -> None:
    (example,) = (json.loads(block) for kind, block in BLOCKS if kind == "json")
    (read,) = read_batch(json.dumps([example]).encode(), 100)
    assert isinstance(read, ExecutionTrace)
    for name in set(example) - {"taskResults"}:
        (spared,) = read_batch(json.dumps([{**example, name: None}]).encode(), 100)
        assert isinstance(spared, TraceFault), name


def test_the_page_has_every_other_name_of_a_field() -> None:
    rows = re.findall(r"^\| (?:in `\w+`: )?`(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE)
    for names in (_TRACE_NAMES, _TASK_NAMES):
        for field, others in names.items():
            assert (field, ", ".join(f"`{other}`" for other in others)) in rows
