"""Page on traces, executed; settings compared with the code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from misbehaving import Collector

from healkit.config import settings
from healkit.parts.traces.contract import read_trace

PAGE = (Path(__file__).parents[3] / "docs" / "traces.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.requirement("TRACE-1", "TRACE-3")
def test_the_page_does_what_it_says(tmp_path: Path, collector: Collector) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HEALKIT_DB": str(tmp_path / "healkit.db")}
    (code,) = (block for kind, block in BLOCKS if kind == "python")
    (console,) = (block for kind, block in BLOCKS if kind == "console")
    commands = console.replace("$ ", "").replace("https://collector.example", collector.url).replace("…", "x")
    for words in (
        [sys.executable, "-W", "error", "-c", f"{code}\nhk.close()\n"],
        ["bash", "-ec", commands.replace("trace sync", "trace sync --local")],
    ):
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
    assert "traces     1 on this machine only" in done.stdout
    assert "1 sent, 0 waiting, 0 parked" in done.stdout
    assert len(collector.stored) == 1


@pytest.mark.requirement("TRACE-1")
def test_the_example_on_the_page_is_a_trace() -> None:
    (example,) = (block for kind, block in BLOCKS if kind == "json")
    assert json.loads(example)["capabilityId"] == read_trace(example).capability_id


@pytest.mark.requirement("TRACE-5")
def test_the_page_names_every_setting_with_its_default() -> None:
    table = PAGE.partition("## Settings")[2]
    said = {}
    for names, defaults in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|([^|]*)\|", table, re.MULTILINE):
        for name, default in zip(re.findall(r"`(\w+)`", names), defaults.split(","), strict=True):
            said[name] = default.strip(" `")
    ours = re.compile(r"sync_|trac|sanitize_log|org$|project$|payload_max_bytes")
    fields = [setting for setting in settings() if ours.match(setting.name)]
    assert said == {field.name: as_shown(field.default) for field in fields}


def as_shown(value: object) -> str:
    if value is None:
        return "on for a database on a server"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
