"""Each part can be taken away, and the rest works."""

from __future__ import annotations

import contextlib
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
#: Heal the tool too, as a last step.
HEALED = """    hk.vault.add("twice", "def twice(n):\\n    return n * m\\n", examples=[{"arguments": {"n": 3}, "result": 9}])
    report = hk.heal("twice", dry_run=True, budget_s=10)
    assert report.attempts and "memory" not in str(report.notes), report
"""
#: Attributes of a Healkit → the part that adds them.
ADDED = {
    "decide": "decide",
    "doctor": "doctor",
    "heal": "heal",
    "learning": "learn",
    "map": "maps",
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
    "map": "maps",
    "seed": "teach",
    "trace": "runs",
    "trust": "doctor",
    "views": "views",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a copy of the package, from which parts can be taken away."""
    made = tmp_path_factory.mktemp("site")
    # Links, with the compiled files: to compile the package anew takes longer than the test itself.
    shutil.copytree(
        FOLDER, made / "healkit", ignore=shutil.ignore_patterns("labextension"), copy_function=linked
    )
    return made


def linked(source: str, copy: str) -> str:
    try:
        os.link(source, copy)
    except OSError:  # on another disk
        shutil.copy2(source, copy)
    return copy


def without(parts: list[str], site: Path, folder: Path, way: str = WAY) -> tuple[list[str], set[str]]:
    """Run the way of the core in a package that lacks these parts; return what it has.

    That is the attributes of a `Healkit`, and the commands.
    """
    with contextlib.ExitStack() as taken:
        for part in parts:
            there = site / "healkit" / "parts" / part
            away = there.rename(folder / part)
            taken.callback(away.rename, there)
        done = subprocess.run(
            [sys.executable, "-c", way, str(folder / f"{len(parts)}{parts[0]}.db"), *ADDED],
            env={**os.environ, "PYTHONPATH": str(site)},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, (parts, done.stderr)
    attributes, commands = done.stdout.split("\n")[:2]
    return attributes.split(), {*commands.split()}


@pytest.mark.requirement("ARCH-1")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_without_a_part_the_rest_starts_and_a_tool_is_run_and_patched(site: Path, tmp_path: Path) -> None:
    needs_it = {"cells": ("heal",), "runs": ("heal", "decide"), "views": ("runs", "heal", "decide")}
    for part in PARTS:
        needed = {part, *needs_it.get(part, ())}
        attributes, commands = without([part], site, tmp_path)
        assert attributes == [name for name, of in ADDED.items() if of not in needed], part
        assert commands & COMMANDS.keys() == {name for name, of in COMMANDS.items() if of not in needed}, part


@pytest.mark.requirement("ARCH-1")
@pytest.mark.slow
def test_a_tool_is_healed_without_learning(site: Path, tmp_path: Path) -> None:
    """What learning adds to healing is an advisor, which is left out with it."""
    attributes, _ = without(["learn"], site, tmp_path, WAY.replace("    print(", f"{HEALED}    print(", 1))
    assert "heal" in attributes


@pytest.mark.requirement("ARCH-1")
def test_the_core_alone_runs_shows_and_patches_a_tool(site: Path, tmp_path: Path) -> None:
    attributes, commands = without(PARTS, site, tmp_path)
    assert attributes == []
    assert commands == {
        *[
            "run",
            "demo",
            "lab",
            "page",
            "docs",
            "setup",
            "errors",
            "doctor",
            "mcp",
            "status",
            "db",
            "log",
            "vault",
        ]
    }
