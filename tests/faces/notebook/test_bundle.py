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

from healkit.faces.notebook.widgets.panel import bundle_hash

ROOT = Path(__file__).parents[3]
JS, STATIC = ROOT / "js", ROOT / "healkit" / "faces" / "notebook" / "widgets" / "static"
EXTENSION = ROOT / "healkit" / "labextension"
#: All scripts of the extension together.
EXTENSION_MAX_BYTES = 300_000


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources, with the packages that build them."""
    folder = tmp_path_factory.mktemp("build") / "js"
    shutil.copytree(JS, folder, ignore=shutil.ignore_patterns("node_modules", "lib", "out"))
    for inner in (folder, folder / "lab"):
        ended(inner, "npm", "ci", "--ignore-scripts")
    return folder


def ended(folder: Path, *command: str | Path, code: int = 0) -> str:
    """Run a command to its end; what it says."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_fresh_build_equals_what_is_committed(sources: Path) -> None:
    ended(sources / "lab", "npx", "tsc")
    ended(sources, "node", "build.mjs", sources.parent / "healkit")
    for folder in (STATIC, EXTENSION):
        built = _files(sources.parent / folder.relative_to(ROOT))
        committed = _files(folder)
        assert built.keys() == committed.keys()
        for name in built:
            assert built[name] == committed[name], f"{name} is not what js/ builds to: docs/recipes.md"


#: Ways to have a kernel run what is not constant.
COMPOSED = (
    "kernel.requestExecute({ code: `show(${count})` });",
    'kernel.requestExecute({ code: "show(" + count + ")" });',
    "const code = `show(${count})`; kernel.requestExecute({ code });",
    "export function f(code) { kernel.requestExecute({ code }); }",
    'const code = "1"; export function f(code) { kernel.requestExecute({ code }); }',
    'let code = "1"; kernel.requestExecute({ code });',
    "kernel.requestExecute(content);",
    'kernel.requestExecute({ code: "1", ...content });',
    'kernel.requestExecute({ code: ["show", count].join("") });',
    'kernel.requestExecute({ code: "show(N)".replace("N", count) });',
    'kernel.requestExecute({ code: "", user_expressions: { it: `show(${count})` } });',
    "const run = kernel.requestExecute; run({ code: `show(${count})` });",
    'kernel["requestExecute"]({ code: `show(${count})` });',
    "kernel.requestExecute.call(kernel, { code: `show(${count})` });",
    'kernel.sendShellMessage(message("execute_request", { code }));',
    "OutputArea.execute(`show(${count})`, area, session);",
    "const show = (code) => execute(kernel, code);",
)
CONSTANT = """
import CODE from "./call.py";
import { COMMANDS } from "./commands.js";
const OPEN = { tab: "open-tab" } as const;
kernel.requestExecute({ code: CODE, silent: true }, true, { data: JSON.stringify(count) });
kernel.requestExecute({ code: "pass", user_expressions: { it: "1" } });
commands.execute(COMMANDS.open);
commands.execute(OPEN.tab, { path: `${folder}/x` });
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("TRUST-1")
def test_the_build_refuses_code_for_a_kernel_that_is_put_together(sources: Path) -> None:
    ended(sources, "npm", "run", "lint")
    good, *bad = [sources.parent / f"{number}.ts" for number in range(len(COMPOSED) + 1)]
    good.write_text(CONSTANT)
    ended(sources, "node", "lint.mjs", good)
    for path, text in zip(bad, COMPOSED, strict=True):
        path.write_text(text)
    refused = ended(sources, "node", "lint.mjs", *bad, code=1)
    assert {line.partition(":")[0] for line in refused.splitlines()} == {f"../{path.name}" for path in bad}
    (sources / "src" / "more.js").write_text(COMPOSED[0])
    assert "more.js:1: the code of requestExecute has to be a constant" in ended(
        sources, "node", "build.mjs", sources.parent / "refused", code=1
    )
    (sources / "src" / "more.js").unlink()


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


@pytest.mark.slow
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
