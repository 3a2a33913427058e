"""Workers that lack a layer of their tier."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import healkit
from healkit.core.workers.sandbox import RunFolder, Sandbox, Tier
from healkit.core.workers.tiers import not_in_force, probe, require_restricted
from healkit.errors import WorkerNotRestricted

HERE = Path(__file__).parent
TIERS: tuple[Tier, ...] = ("namespaces", "landlock")
_UNLESS_PROBED = "\nimport sys\nif 'probe_main' not in str(sys.orig_argv):\n    "
#: Fault → the file of `workers/inside` that it is in, and what is added at its end.
FAULTS = {
    "a seal that loads nothing and says so": ("lockdown.py", "seal = lambda restrictions: {}"),
    "a filter that the kernel refuses": (
        "seccomp.py",
        "def _load(program):\n        raise OSError(12, 'out of memory')",
    ),
    "a filter that is not loaded, unnoticed": ("seccomp.py", "_load = lambda program: None"),
}


def package_with(fault: tuple[str, str], folder: Path) -> Path:
    """Copy the package, as links, with that fault in it; return the folder to import it from."""
    source = Path(healkit.__file__).parent

    def link(file: str, copy: str) -> str:
        try:
            os.link(file, copy)
        except OSError:  # another file system
            shutil.copy2(file, copy)
        return copy

    shutil.copytree(source, folder / "site" / "healkit", copy_function=link)
    path = folder / "site" / "healkit" / "core" / "workers" / "inside" / fault[0]
    text = path.read_text()
    path.unlink()  # a link to the original until here
    path.write_text(text + _UNLESS_PROBED + fault[1] + "\n")
    return folder / "site"


def with_fault(fault: tuple[str, str], tier: str, folder: Path) -> dict[str, Any]:
    """Run a host with that package; return what it meets."""
    done = subprocess.run(
        [sys.executable, str(HERE / "weak_worker_host.py"), tier, str(folder)],
        env={**os.environ, "PYTHONPATH": str(package_with(fault, folder))},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.requirement("WORK-3")
@pytest.mark.parametrize("tier", TIERS)
def test_the_host_sees_for_itself_that_a_process_is_not_restricted(tier: Tier, tmp_path: Path) -> None:
    """S9: what a worker reports is a claim; the kernel shows the filter, the limits and the namespaces."""
    sandbox = Sandbox(tier, RunFolder(tmp_path / "run"))
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        seen = not_in_force(sandbox, process.pid)
        with pytest.raises(WorkerNotRestricted, match="no filter is in force"):
            require_restricted(sandbox, dict.fromkeys(probe(tier).layers, "done"), process.pid)
        process.communicate()
    lacking = {said.partition(":")[0] for said in seen}
    assert lacking >= {"no_new_privs", "seccomp", "rlimits"}
    assert ("namespaces" in lacking) == (tier == "namespaces")


@pytest.mark.slow
@pytest.mark.requirement("WORK-3")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("fault", "tier"), [*((fault, "namespaces") for fault in FAULTS), (next(iter(FAULTS)), "landlock")]
)
def test_a_worker_without_its_filter_is_ended_before_it_gets_code(
    fault: str, tier: str, tmp_path: Path
) -> None:
    """S9: a worker whose filter failed to load ran the tool, with a network, and its row said the tier."""
    found = with_fault(FAULTS[fault], tier, tmp_path)
    rows, marks = found.pop("rows"), found.pop("marks")
    if (
        fault == "a seal that loads nothing and says so"
    ):  # a trial server has a seal of its own, in order here
        assert found.pop("trials").startswith("ran")
    for said in found.values():
        assert said.startswith("WORKER_NOT_RESTRICTED"), found
        assert "seccomp" in said
    assert marks == []
    refused = {(origin, "none", "WORKER_NOT_RESTRICTED") for origin in ("python", "trial")}
    assert {tuple(row) for row in rows} - {("trial", tier, None)} <= refused


@pytest.mark.slow
@pytest.mark.requirement("WORK-3")
@pytest.mark.timeout(300)
def test_a_trial_whose_own_filter_is_not_in_force_runs_nothing(tmp_path: Path) -> None:
    """S9: a trial server forks; each child has the rest of the filter to load, which the host did not check."""
    fault = ("seccomp.py", "ChildFilter.load = lambda self: None")
    found = with_fault(fault, "namespaces", tmp_path)
    assert found["trials"].startswith("WORKER_NOT_RESTRICTED"), found
    assert "does not deny signals" in found["trials"]
    assert found["cold kernel"] == "ran: SUCCESS"
