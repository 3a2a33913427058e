"""Committed bundle: whole, and what its sources build to."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JS, STATIC = ROOT / "js", ROOT / "healkit" / "notebook" / "widgets" / "static"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_fresh_build_equals_the_committed_bundle(tmp_path: Path) -> None:
    sources = tmp_path / "js"
    shutil.copytree(JS, sources, ignore=shutil.ignore_patterns("node_modules"))
    for command in (["npm", "ci", "--ignore-scripts"], ["node", "build.mjs", str(tmp_path / "out")]):
        done = subprocess.run(command, cwd=sources, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    built = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    committed = {path.name: path.read_bytes() for path in STATIC.iterdir()}
    assert built.keys() == committed.keys()
    for name in built:
        assert built[name] == committed[name], (
            f"{name} is not what js/ builds to: cd js && npm ci && npm run build"
        )


def test_the_bundle_fetches_nothing_and_brings_its_licences() -> None:
    bundle = (STATIC / "panels.js").read_text()
    assert not re.search(r"\b(fetch|importScripts|XMLHttpRequest|WebSocket|EventSource)\s*\(", bundle)
    assert not re.search(r"""(^|[;}\n])import\s*["'{*(]""", bundle)
    assert "</script" not in bundle.lower()
    licences = (STATIC / "LICENSES.txt").read_text()
    for name in json.loads((JS / "package.json").read_text())["dependencies"]:
        assert re.search(rf"^{re.escape(name)} \S+ \(MIT\)$", licences, re.MULTILINE), name


def test_the_lock_file_names_no_registry() -> None:
    locked = (JS / "package-lock.json").read_text()
    assert "resolved" not in locked
    assert "http" not in "".join(re.findall(r'"(?:version|integrity)": "[^"]*"', locked))
