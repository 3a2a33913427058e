"""Trial servers: as little as possible held, read ahead, lost."""

from __future__ import annotations

import resource
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from trial_server_samples import children_of_trial_servers, end_trial_servers, trial_servers
from waiting import wait_until

from healkit import Config, Healkit
from healkit.contracts import rpc
from healkit.runtime.shares import TrialResult
from healkit.runtime.trials import Trial
from healkit.workers.inside.trialserver_main import rehearse

LOADED = "import sys\ndef f():\n    return sorted({'asyncio', 'logging', 'random', 'threading'} & {*sys.modules})\n"


@pytest.fixture(autouse=True)
def fresh() -> None:
    """End the trial servers that have served other tests."""
    end_trial_servers()


def values(healkit: Healkit, *codes: str) -> list[object]:
    """Return what each code's `f` returns, one after the other in one trial server."""
    results = healkit.trials([Trial(code, {}, "f") for code in codes], parallel=1)
    assert [result.failure for result in results] == [None] * len(codes)
    return [result.value for result in results]


def test_a_trial_server_holds_no_module_that_resets_itself_after_a_fork(
    healkit: Healkit,
) -> None:
    assert values(healkit, LOADED) == [[]]


def test_standard_modules_that_code_names_are_imported_before_its_trial(healkit: Healkit) -> None:
    here = "import sys\ndef f():\n    here = {!r} in sys.modules\n    {}\n    return here\n"
    named = values(
        healkit,
        here.format("colorsys", "import os, colorsys as colours"),
        here.format("xml.dom.minidom", "from xml.dom.minidom import parseString"),
        here.format("asyncio", "async def g(): pass"),
        here.format("sqlite3", "'import sqlite3'"),
        here.format("numpy", "import numpy"),  # numpy and pandas are the host's own choice
        here.format("jinja2", "import jinja2"),
    )
    assert named == [True, True, True, False, True, False]


def test_a_coroutine_runs_in_a_trial_server_that_has_no_event_loop_yet(healkit: Healkit) -> None:
    loop = "__import__('asy' + 'ncio')"
    code = f"def f():\n    return {loop}.sleep(0, 'slept')\n"
    assert values(healkit, code, "async def f():\n    return 1\n") == ["slept", 1]


def test_no_program_and_no_test_of_the_standard_library_runs_in_a_trial_server(healkit: Healkit) -> None:
    dead = "def f():\n    if False:\n        import {}\n    return 1\n"
    programs = ("unittest.__main__", "asyncio.__main__", "ctypes.test", "this", "winreg", "os.nothing")
    assert values(healkit, *(dead.format(name) for name in programs)) == [1] * len(programs)
    first = trial_servers()
    assert values(healkit, LOADED)
    assert trial_servers() == first


def test_code_finds_the_real_ctypes_util(healkit: Healkit) -> None:
    code = "def f():\n    import ctypes.util\n    return [ctypes.util.__spec__.name, 'threading' in {*__import__('sys').modules}]\n"
    assert values(healkit, code) == [["ctypes.util", True]]
    healkit.vault.add("f", code)
    assert healkit.execute("f", mode="subprocess").value == ["ctypes.util", True]


@pytest.mark.slow
@pytest.mark.parametrize("preload", [("numpy",), ("numpy", "numpy.random")])
def test_numpys_random_numbers_differ_from_trial_to_trial(tmp_path: Path, preload: tuple[str, ...]) -> None:
    code = "import numpy\ndef f():\n    return numpy.random.random()\n"
    with Healkit(tmp_path / "x.db", config=Config(preload=preload, start_timeout_s=60)) as healkit:
        assert len({*values(healkit, *[code] * 3)}) == 3


def test_a_frame_is_read_without_a_byte_of_the_next() -> None:
    ours, theirs = socket.socketpair()
    frames = [rpc.encode_frame(rpc.Decision(node, "x" * 100_000)) for node in "ab"]
    reader = rpc.FrameReader(theirs, ahead=False)
    sending = threading.Thread(target=ours.sendall, args=(b"".join(frames) + b"\x00\x00",))
    with ours, theirs:
        sending.start()
        assert [reader.read() for _ in frames] == [frame[4:] for frame in frames]
        sending.join()
        assert theirs.recv(10, socket.MSG_PEEK) == b"\x00\x00"
        ours.close()
        assert reader.read() is None


@pytest.mark.slow
def test_only_the_trial_that_ran_is_lost_with_its_trial_server(healkit: Healkit) -> None:
    quick, slow = "def f(n):\n    return n\n", "import time\ndef f(n):\n    time.sleep(60)\n"
    healkit.trials([Trial(quick, {"n": n}, "f") for n in range(5)], parallel=1)
    results: list[TrialResult] = []

    def run() -> None:
        trials = [Trial(slow if n == 10 else quick, {"n": n}, "f", timeout_s=90) for n in range(20)]
        results.extend(healkit.trials(trials, parallel=1))

    running = threading.Thread(target=run)
    running.start()
    the_one_that_stays().parent().kill()
    running.join(60)
    assert [result.value for result in results] == [None if n == 10 else n for n in range(20)]
    assert [result.ok for result in results] == [n != 10 for n in range(20)]
    assert results[10].failure.code == "WORKER_LOST"


def the_one_that_stays() -> psutil.Process:
    """Return the first child of a trial server that is still there after half a second.

    By this process's own clock: that of the processes' starts may be ahead of it.
    """
    seen: dict[psutil.Process, float] = {}

    def older() -> list[psutil.Process]:
        now = time.monotonic()
        return [child for child in children_of_trial_servers() if now - seen.setdefault(child, now) > 0.5]

    return wait_until(older)[0]


def test_a_rehearsal_leaves_its_process_as_it_was() -> None:
    def state() -> list[object]:
        limits = [resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)]
        handler = signal.getsignal(signal.SIGALRM)
        return [limits, handler, sys.stdout, sys.stderr, {*sys.modules}]

    rehearse()
    before = state()
    rehearse()
    assert state() == before


def test_short_runs_one_after_the_other_do_not_start_a_trial_server_each(healkit: Healkit) -> None:
    for _ in range(12):
        assert values(healkit, "def f():\n    return 1\n") == [1]
        results = healkit.trials([Trial("def f():\n    return 2\n", {}, "f")] * 3, parallel=2)
        assert [result.value for result in results] == [2, 2, 2]
    assert len(trial_servers()) <= 2
