"""Committed bundle: whole, and what its sources build to."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from healkit.notebook.widgets.panel import bundle_hash

ROOT = Path(__file__).parents[2]
JS, STATIC = ROOT / "js", ROOT / "healkit" / "notebook" / "widgets" / "static"
EXTENSION = ROOT / "healkit" / "labextension"
#: All scripts of the extension together.
EXTENSION_MAX_BYTES = 300_000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_fresh_build_equals_what_is_committed(tmp_path: Path) -> None:
    sources = tmp_path / "js"
    shutil.copytree(JS, sources, ignore=shutil.ignore_patterns("node_modules", "lib", "out"))
    for folder, command in (
        (sources, ["npm", "ci", "--ignore-scripts"]),
        (sources / "lab", ["npm", "ci", "--ignore-scripts"]),
        (sources / "lab", ["npx", "tsc"]),
        (sources, ["node", "build.mjs", str(tmp_path / "healkit")]),
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for folder in (STATIC, EXTENSION):
        built = _files(tmp_path / folder.relative_to(ROOT))
        committed = _files(folder)
        assert built.keys() == committed.keys()
        for name in built:
            assert built[name] == committed[name], f"{name} is not what js/ builds to: docs/contributing.md"


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_bundle_fetches_nothing_and_brings_its_licences() -> None:
    bundle = (STATIC / "panels.js").read_text()
    assert not re.search(r"\b(fetch|importScripts|XMLHttpRequest|WebSocket|EventSource)\s*\(", bundle)
    assert not re.search(r"""(^|[;}\n])import\s*["'{*(]""", bundle)
    assert "</script" not in bundle.lower()
    licences = (STATIC / "LICENSES.txt").read_text()
    for name in json.loads((JS / "package.json").read_text())["dependencies"]:
        assert re.search(rf"^{re.escape(name)} \S+ \(MIT\)$", licences, re.MULTILINE), name


@pytest.mark.requirement("FACE-9")
def test_the_extension_is_small_and_takes_jupyterlabs_packages_from_jupyterlab() -> None:
    scripts = list((EXTENSION / "static").glob("*.js"))
    assert sum(len(gzip.compress(path.read_bytes(), mtime=0)) for path in scripts) <= EXTENSION_MAX_BYTES
    licences = json.loads((EXTENSION / "static" / "third-party-licenses.json").read_text())["packages"]
    names = {one["name"] for one in licences}
    shared = json.loads((JS / "lab" / "core" / "package.json").read_text())["dependencies"]
    assert names.isdisjoint(shared)
    assert {"@codemirror/merge", "@codemirror/lang-python", "@noble/hashes"} <= names
    assert {one["licenseId"] for one in licences} == {"MIT"}
    assert all(one["extractedText"] for one in licences)


def test_the_extension_has_the_panels_of_this_version() -> None:
    scripts = "".join(path.read_text() for path in (EXTENSION / "static").glob("*.js"))
    assert bundle_hash() in scripts


@pytest.mark.requirement("FACE-9")
def test_jupyter_finds_the_extension_enabled_and_whole(tmp_path: Path) -> None:
    folder = tmp_path / "labextensions"
    folder.mkdir()
    (folder / "healkit").symlink_to(EXTENSION)
    environment = {
        **os.environ,
        "JUPYTER_PATH": str(tmp_path),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
    }
    command = [sys.executable, "-m", "jupyter", "labextension", "list"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    line = next(line for line in said.splitlines() if line.strip().startswith("healkit "))
    assert line.split()[1:] == ["v0.1.0", "enabled", "OK", "(python,", "healkit)"], said


@pytest.mark.parametrize("folder", [JS, JS / "lab"])
def test_the_lock_file_names_no_registry(folder: Path) -> None:
    locked = (folder / "package-lock.json").read_text()
    assert "resolved" not in locked
    assert "http" not in "".join(re.findall(r'"(?:version|integrity)": "[^"]*"', locked))
