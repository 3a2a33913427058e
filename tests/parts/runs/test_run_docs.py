"""Page on the run folder, executed; its tables and the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_samples import call

from healkit import Healkit
from healkit.errors import CodeDoesNotParse, PolicyHalted
from healkit.parts.runs.contract import EVENT_TYPES, PolicyDefaults
from healkit.parts.runs.reader import validate_run

PAGE = (Path(__file__).parents[3] / "docs" / "run_folder.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.requirement("RUN-1", "RUN-6")
def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HEALKIT_DB": str(tmp_path / "healkit.db")}
    code = "\n".join(block for kind, block in BLOCKS if kind == "python") + "\nhk.close()\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "The same failing state was observed 2 times; 1 is allowed." in done.stdout
    runs = sorted(p.name for p in (tmp_path / "runs").iterdir() if p.name != ".new")
    assert len(runs) == 3
    monkeypatch.setenv("HEALKIT_DB", str(tmp_path / "healkit.db"))
    monkeypatch.chdir(tmp_path)
    (console,) = (block for kind, block in BLOCKS if kind == "console")
    for line in console.splitlines():
        words = line.removeprefix("$ healkit ").split()
        words[2:] = runs[:2] if words[1] == "diff" else words[2:]
        told = call(*words)
        assert told.returncode == (1 if words[1] == "diff" else 0), told.stderr
        assert told.stdout


def _table(after: str) -> set[str]:
    """Return the events in the first column of the table that follows a sentence."""
    rows = re.search(r"\n\n\| event \|.*\n\|.*\n((?:\|.*\n)+)", PAGE.partition(after)[2])
    first = [row.split("|")[1] for row in rows[1].splitlines()]
    return set(re.findall(r"`([\w.]+)`", "".join(first)))


@pytest.mark.requirement("RUN-3")
def test_the_page_names_every_event_with_what_writes_it(healkit: Healkit) -> None:
    """C7: runs write all events of the first table, and no other; tests/parts/heal/test_loop.py does the second."""
    of_runs, of_healings = _table("stands for nothing else:"), _table("writes these too:")
    of_decisions = _table("[decision](decisions.md) writes these:")
    assert of_decisions == {name for name in EVENT_TYPES if name.startswith("trace.")}
    assert of_runs | of_healings | of_decisions == set(EVENT_TYPES)
    assert not of_runs & of_healings
    code = "def share(parts):\n    print(parts)\n    return 6 / parts\n"
    healkit.vault.add("share", code)
    with healkit.run(policy=PolicyDefaults(same_state_revisits=1)) as run:
        healkit.execute("share", arguments={"parts": 2})
        healkit.try_code("share", code + "# tried\n", {"parts": 3})
        with pytest.raises(CodeDoesNotParse):
            healkit.try_code("share", "def share(", {"parts": 3})
        failed = healkit.execute("share", arguments={"parts": 0})
        healkit.rerun(failed.log_id)
        with pytest.raises(PolicyHalted):
            healkit.execute("share", arguments={"parts": 0})
    healkit.vault.add("away", "def away():\n    raise ConnectionRefusedError('nobody is there')\n")
    with healkit.run(policy=PolicyDefaults(backoff_ms=(1,))) as again:
        healkit.execute("away")
    folders = (run.folder, again.folder)
    written = {event.event_type for folder in folders for event in validate_run(folder).events}
    assert written == of_runs
