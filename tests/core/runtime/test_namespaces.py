"""Hosts in two PID namespaces with one host name (audit R7)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import WITHIN_S

from healkit import Healkit
from healkit.core.host import host_identity, is_alive
from healkit.core.workers.sandbox import RunFolders, bubblewrap_path

ELSEWHERE = """
import sys
from pathlib import Path
from healkit import Healkit
from healkit.core.host import host_identity
from healkit.core.runtime.recording import Recorder
from healkit.core.workers.sandbox import RunFolders
sys.path[:0] = [sys.argv[3], sys.argv[4]]
from store_samples import started, succeeded
hk = Healkit(sys.argv[1])
folders = RunFolders(Path(sys.argv[2]))
folders.next().root.mkdir(parents=True)
begun = started("elsewhere")
hk.recorder.open_row(begun)
print(folders.root, flush=True)
print(host_identity().pid, flush=True)
sys.stdin.readline()
hk.recorder.close_row(succeeded(begun))
print(hk.log.by_trace(begun.trace_id).status, flush=True)
hk.close()
folders.close()
"""


@pytest.mark.slow
def test_opening_the_database_in_one_namespace_leaves_the_rows_and_folders_of_the_other(
    tmp_path: Path,
) -> None:
    bwrap = bubblewrap_path()
    if bwrap is None:
        pytest.skip("no bubblewrap")
    path, base, here = tmp_path / "healkit.db", tmp_path / "base", Path(__file__).parents[2]
    base.mkdir()
    Healkit(path).close()
    command = [bwrap, "--bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc"]
    command += [
        sys.executable,
        "-c",
        ELSEWHERE,
        str(path),
        str(base),
        str(here),
        str(here / "core" / "store"),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        theirs, pid = Path(other.stdout.readline().strip()), int(other.stdout.readline())
        assert pid < 100, "it counts its processes for itself"
        with Healkit(path) as healkit:
            (row,) = healkit.log.running()
            assert row.tool_name == "elsewhere"
            assert healkit.log.query(status="FAILURE").rows == []
            RunFolders(base)
            assert theirs.is_dir()
            other.stdin.write("\n")
            other.stdin.flush()
            assert other.stdout.readline() == "SUCCESS\n"
            other.wait(timeout=WITHIN_S)
            assert healkit.log.running() == []
    RunFolders(base)
    assert list(base.iterdir()) == []


def test_a_process_of_another_namespace_is_not_said_to_be_dead() -> None:
    import msgspec

    me = host_identity()
    assert is_alive(me) is True
    assert is_alive(msgspec.structs.replace(me, pid_namespace="pid:[1]")) is None
    assert is_alive(msgspec.structs.replace(me, pid_namespace="")) is True, "as older versions wrote it"
    assert is_alive(msgspec.structs.replace(me, pid=2**22 + 1)) is False
