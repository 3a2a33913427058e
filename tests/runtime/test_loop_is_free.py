"""Event loop that all executions of a process share.

It does no work that waits or takes long.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

import msgspec
import pytest

from healkit.contracts import claims
from healkit.contracts.rpc import ExecutionComplete, Init
from healkit.contracts.tools import EntryRef
from healkit.runtime.outcomes import conclude
from healkit.workers.worker import Outcome

HOST = """
import json, sys, threading
from healkit import Healkit
from healkit.runtime import background
from healkit.runtime.trials import Trial
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
    done = subprocess.run(
        [sys.executable, "-c", HOST, tmp_path / "healkit.db"], capture_output=True, text=True, check=True
    )
    values, count, on_loop = json.loads(done.stdout)
    assert values == [1] * 4
    assert count > 50
    assert [path for path in on_loop if not path.startswith("/proc/self/fdinfo/")] == []


def test_a_large_result_is_counted_once() -> None:
    """S2: it was counted with its message, and again by itself, which took as long as to decode it."""
    complete = ExecutionComplete(msgspec.json.encode([1] * 200_000))
    init = Init(EntryRef("x", "default", 1, ""), "", msgspec.Raw(b"{}"), [], 1.0, 1.0, 1, 1, 10_000_000, 1)
    counted = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is claims._Counter.add.__code__:
            counted.append(frame)

    threading.setprofile(note)
    try:
        value, failure = asyncio.run(conclude(Outcome("complete", complete), init))
    finally:
        threading.setprofile(None)
    assert (len(value), failure, counted) == (200_000, None, [])
