"""Each part can be taken away, and the rest works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from healkit.package import FOLDER

PARTS = sorted(file.parent.name for file in (FOLDER / "parts").glob("*/__init__.py"))
#: Add a tool, run it, see it fail, read its card, patch it, run it again, ask for what is on record.
WAY = """
import sys
from healkit import Healkit

with Healkit(sys.argv[1]) as hk:
    hk.vault.add("half", "def half(n):\\n    return n['count'] / 2\\n")
    failed = hk.execute("half", arguments={"n": {"cuont": 4}})
    assert failed.failure.summary == "KeyError: 'count'", failed.failure
    for shown in (failed.to_text(), failed.to_html()):
        assert "half v1 failed" in shown and "KeyError" in shown
    hk.vault.patch("half", "def half(n):\\n    return n['cuont'] / 2\\n")
    assert hk.rerun(failed.log_id).value == 2
    assert [row.status for row in hk.executions()] == ["SUCCESS", "FAILURE"]
    assert hk.last_error().log_id == failed.log_id
    print(*sorted({*sys.argv[2:]} & {*dir(hk)}))
from healkit.faces.commands import rows
print(*[name for name in rows.names() if rows.find(name)])
"""
#: Attributes of a Healkit → the part that adds them.
ADDED = {
    "decide": "decide",
    "doctor": "doctor",
    "heal": "heal",
    "learning": "learn",
    "mcp": "mcp_client",
    "runs": "runs",
    "seed": "teach",
    "traces": "traces",
    "trends": "trends",
    "trials": "trials",
    "views": "views",
}
#: Commands → the part that adds them.
COMMANDS = {
    **dict.fromkeys(("heal", "check", "requests"), "heal"),
    **dict.fromkeys(("decide", "summarize", "audit"), "decide"),
    **dict.fromkeys(("graph", "suggest", "learn"), "learn"),
    "collect": "collect",
    "kernelspec": "kernels",
    "seed": "teach",
    "trace": "runs",
    "trust": "doctor",
    "views": "views",
}


def without(parts: list[str], folder: Path) -> tuple[list[str], set[str]]:
    """Run the way of the core in a copy of the package that lacks these parts; return what it has.

    That is the attributes of a `Healkit`, and the commands.
    """
    left_out = shutil.ignore_patterns("labextension")
    shutil.copytree(FOLDER, folder / "site" / "healkit", ignore=left_out)
    for part in parts:
        shutil.rmtree(folder / "site" / "healkit" / "parts" / part)
    done = subprocess.run(
        [sys.executable, "-c", WAY, str(folder / "healkit.db"), *ADDED],
        env={**os.environ, "PYTHONPATH": str(folder / "site")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    attributes, commands = done.stdout.split("\n")[:2]
    return attributes.split(), {*commands.split()}


@pytest.mark.requirement("ARCH-1")
@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_without_a_part_the_rest_starts_and_a_tool_is_run_and_patched(part: str, tmp_path: Path) -> None:
    needs_it = {"runs": ("heal", "decide"), "views": ("runs", "heal", "decide")}
    needed = {part, *needs_it.get(part, ())}
    attributes, commands = without([part], tmp_path)
    assert attributes == [name for name, of in ADDED.items() if of not in needed]
    left = {name for name, of in COMMANDS.items() if of not in needed}
    assert commands & COMMANDS.keys() == left


@pytest.mark.requirement("ARCH-1")
def test_the_core_alone_runs_shows_and_patches_a_tool(tmp_path: Path) -> None:
    attributes, commands = without(PARTS, tmp_path)
    assert attributes == []
    assert commands == {
        *["run", "demo", "lab", "page", "setup", "errors", "doctor", "mcp", "status", "log", "vault"]
    }
