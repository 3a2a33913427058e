"""Event loop that all executions of a process share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import python

HOST = """
import json, sys, threading
from healkit import Healkit
from healkit.core.runtime import background
from healkit.parts.trials.trials import Trial
read = []
def watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith("/proc/"):
        read.append((threading.current_thread(), str(arguments[0])))
sys.addaudithook(watch)
with Healkit(sys.argv[1]) as healkit:
    healkit.vault.add("inner", "def inner():\\n    return 1\\n")
    healkit.vault.add("outer", "def outer():\\n    return mcp.vault.inner()\\n")
    values = [healkit.execute_tool("outer") for _ in range(2)]
    values += [healkit.execute("inner", mode="subprocess").value]
    values += [result.value for result in healkit.trials([Trial("def f():\\n    return 1\\n")])]
on_loop = [path for thread, path in read if thread is background.loop._thread]
print(json.dumps([values, len(read), on_loop]))
"""


@pytest.mark.slow
@pytest.mark.requirement("WORK-11")
def test_what_the_kernel_shows_of_workers_is_not_read_on_the_event_loop(tmp_path: Path) -> None:
    """S9: the check of a worker, and the count of a nested call's processor time, stopped all others for a millisecond."""
    done = python(HOST, tmp_path / "healkit.db")
    values, count, on_loop = json.loads(done.stdout)
    assert values == [1] * 4
    assert count > 50
    assert [path for path in on_loop if not path.startswith("/proc/self/fdinfo/")] == []
