"""Outcomes of tools: each has its code, row and next step."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from trial_server_samples import worker_processes

from healkit import Config, Healkit, ToolExecutionError
from healkit.core.runtime import background
from healkit.core.workers.tiers import achieved_tier
from healkit.errors import TOOL_CODES

#: Tool → its failure's code, its error's name, and the lines of its body.
BAD_TOOLS = {
    "raises": ("TOOL_EXCEPTION", "ZeroDivisionError", "return 1 / 0"),
    "recurses": ("TOOL_EXCEPTION", "RecursionError", "return recurses()"),
    "exits": ("TOOL_EXITED", "ProcessExited", "os._exit(3)"),
    "sys_exits": ("TOOL_EXCEPTION", "SystemExit", "sys.exit(3)"),
    "segfaults": ("TOOL_CRASHED", "SIGSEGV", "ctypes.string_at(0)"),
    "aborts": ("TOOL_CRASHED", "SIGABRT", "os.abort()"),
    "prints_200_mb": ("TOOL_OUTPUT_LIMIT", "OutputLimit", "for _ in range(200):\n        print('x' * 10**6)"),
    "writes_200_mb": ("TOOL_OUTPUT_LIMIT", "OutputLimit", "for _ in range(200):\n        os.write(1, b'x' * 10**6)"),
    "returns_1_gb": ("TOOL_RESULT_TOO_LARGE|TOOL_OUT_OF_MEMORY", ".*", "return 'x' * 10**9"),
    "hoards": ("TOOL_OUT_OF_MEMORY", "MemoryError", "held = []\n    while True:\n        held.append(bytearray(10**8))"),
    "forges": (
        "TOOL_PROTOCOL", "ProtocolError",
        "for fd in range(3, 256):\n        try:\n            os.write(fd, b'\\xff\\xff\\xff\\xff')\n        except OSError:\n"
        "            pass\n    time.sleep(9)",
    ),
}  # fmt: skip


@pytest.mark.requirement("LOG-1", "LOG-3", "LOG-8", "WORK-2", "WORK-4")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name == "returns_1_gb" else []) for name in BAD_TOOLS],
)
def test_a_bad_tool_gives_one_clear_error_one_finished_row_and_a_healthy_next_run(
    healkit: Healkit, name: str
) -> None:
    code, ename, body = BAD_TOOLS[name]
    healkit.vault.add(name, f"import ctypes, os, sys, time\ndef {name}():\n    {body}\n")
    with pytest.raises(ToolExecutionError) as caught:
        healkit.execute_tool(name)
    error = caught.value
    assert error.code in code.split("|")
    assert error.code in TOOL_CODES
    if ename != ".*":
        assert error.ename in ename.split("|")
    if error.code != "TOOL_EXCEPTION":
        assert error.hint
    row = healkit.log.get(error.log_id)
    assert (row.tool_name, row.status, row.error_code) == (name, "FAILURE", error.code)
    assert row.error_traceback == error.failure.traceback
    assert error.ename in row.error_traceback
    assert row.finished_at is not None
    assert healkit.log.running() == []
    healkit.vault.add("healthy", "def healthy():\n    return 'fine'\n")
    assert healkit.execute_tool("healthy") == "fine"


#: What ignores signals, alarms or exceptions, or is stopped: tests/core/escape/escape_runs.py.
HANGS = {
    "in Python": "def hang():\n    while True:\n        pass\n",
    "asleep": "import time\ndef hang():\n    time.sleep(99)\n",
    "in C, deaf to SIGINT": "def hang():\n    return sum(range(10**11))\n",
}


@pytest.mark.requirement("WORK-4")
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind == "in Python" else [pytest.mark.slow]) for kind in HANGS],
)
def test_a_hang_is_ended_at_its_timeout_and_the_traceback_says_where_it_was(
    healkit: Healkit, kind: str
) -> None:
    healkit.vault.add("hang", HANGS[kind])
    execution = healkit.execute("hang", timeout=0.5)
    assert execution.failure.code == "TOOL_TIMEOUT"
    assert execution.failure.tool_frame.filename == "<hang@1>"
    assert "0.5 s" in execution.failure.evalue
    row = healkit.log.get(execution.log_id)
    assert 0.5 <= (row.finished_at - row.timestamp).total_seconds() < 32


@pytest.mark.requirement("WORK-4", "LOG-3")
def test_a_segfault_still_tells_the_tools_line(healkit: Healkit) -> None:
    healkit.vault.add("segv", "import ctypes\n\ndef segv():\n    print('so far')\n    ctypes.string_at(0)\n")
    execution = healkit.execute("segv")
    assert execution.failure.tool_frame.lineno == 5
    assert "ctypes.string_at(0)" in execution.failure.traceback
    assert "so far" in execution.last_output


@pytest.mark.slow
@pytest.mark.requirement("WORK-4")
def test_using_up_the_processor_time_is_its_own_ending(tmp_path: Path) -> None:
    with Healkit(tmp_path / "x.db", config=Config(cpu_s=1, start_timeout_s=30)) as healkit:
        healkit.vault.add("burn", "def burn():\n    while True:\n        pass\n")
        execution = healkit.execute("burn")
    assert execution.failure.code == "TOOL_CPU_LIMIT"
    assert "1 s of processor time" in execution.failure.evalue


@pytest.mark.requirement("WORK-4", "LOG-2")
@pytest.mark.parametrize(
    ("fork_server", "code"),
    [(False, "TOOL_CRASHED"), pytest.param(True, "WORKER_LOST", marks=pytest.mark.slow)],
)
def test_a_worker_killed_from_outside_is_recorded_as_such(
    tmp_path: Path, fork_server: bool, code: str
) -> None:
    """Alone it died of SIGKILL; together with the fork server that it was forked from, it was lost."""
    config = Config(fork_server=fork_server, spares=0, start_timeout_s=30)
    with Healkit(tmp_path / "x.db", config=config) as healkit:
        background.loop.submit(_warm_up(config)).result(timeout=30)
        healkit.vault.add(
            "sleeper", "import time\ndef sleeper():\n    mcp.host.started()\n    time.sleep(60)\n"
        )
        running = threading.Event()
        healkit.provide(running.set, "started")
        killer = threading.Thread(target=lambda: running.wait(60) and _killworker_processes())
        killer.start()
        execution = healkit.execute("sleeper")
        killer.join()
        assert execution.failure.code == code
        assert healkit.log.get(execution.log_id).status == "FAILURE"
        assert [call.tool for call in execution.calls] == ["started"]
        healkit.vault.add("one", "def one():\n    return 1\n")
        assert healkit.execute_tool("one") == 1


def _end_the_wait() -> None:
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


#: Ctrl-C while the caller waits, and in the moment before: then the signal is noted, and ends no wait.
PRESSES = {"while it waits": _end_the_wait, "before it waits": _thread.interrupt_main}


@pytest.mark.slow
@pytest.mark.requirement("WORK-4")
@pytest.mark.parametrize("press", PRESSES.values(), ids=PRESSES)
def test_ctrl_c_stops_the_worker_records_it_and_reaches_the_caller(
    tmp_path: Path, press: Callable[[], None]
) -> None:
    healkit = Healkit(tmp_path / "x.db", config=Config(fork_server=False, start_timeout_s=30))
    healkit.vault.add("sleeper", "import time\ndef sleeper():\n    mcp.host.started()\n    time.sleep(60)\n")
    running = threading.Event()
    healkit.provide(running.set, "started")

    def interrupt() -> None:
        running.wait(60)
        press()

    presser = threading.Thread(target=interrupt)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        healkit.execute("sleeper")
    presser.join()
    row = healkit.log.last_error("sleeper")
    assert row.error_code == "TOOL_KILLED"
    healkit.close()
    background.shutdown()
    assert worker_processes() == []


async def _warm_up(config: Config) -> None:
    await background.pool_for(config).warm_up(achieved_tier(config))


def _killworker_processes() -> None:
    for process in worker_processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("return os.system('ls')", "os.system"),
        ("return os.popen('ls').read()", "subprocess.Popen"),
        (
            "try:\n        subprocess.run(['ls'])\n    except OSError:\n        return 'none'",
            "subprocess.Popen",
        ),
    ],
)
def test_a_warning_names_the_program_that_was_not_run(healkit: Healkit, body: str, named: str) -> None:
    """`os.system` gave 32512 without a word."""
    healkit.vault.add("starts", f"import os, subprocess\ndef starts():\n    {body}\n")
    (warning,) = healkit.execute("starts").warnings
    # Python 3.13 tries a second way where the first is refused, and names both.
    assert warning.startswith(f"The tool tried to start a program ({named}")
    assert "), which no worker may: it was not run." in warning
    healkit.vault.add("plain", "def plain():\n    import json\n    return 1\n")
    assert healkit.execute("plain").warnings == []
