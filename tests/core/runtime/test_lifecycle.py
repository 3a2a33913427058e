"""Fork servers, spares and folders."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest
from processes import command_of, found_below, running
from programs import python
from waiting import wait_until

from healkit import Config, Healkit
from healkit.config import Mode
from healkit.core.runtime import background
from healkit.core.workers.tiers import achieved_tier

BASE = Path(tempfile.gettempdir()) / f"healkit-{os.getuid()}"

HOST = """
import os, signal, sys, time
from healkit import Config, Healkit
from healkit.config import Mode
from healkit.core.runtime import background
from healkit.core.workers.tiers import achieved_tier
config = Config(start_timeout_s=30)
hk = Healkit(sys.argv[1], config=config)
async def warm_up():
    await background.pool_for(config).warm_up(achieved_tier(config))
background.loop.submit(warm_up()).result(timeout=60)
hk.vault.add("one", "def one():\\n    return 1\\n")
assert hk.execute_tool("one") == 1
background.loop.submit(warm_up()).result(timeout=60)
print("ready", flush=True)
{end}
"""


ENDS = {
    "the interpreter's exit": "sys.stdin.readline()",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)",
    "kill -9": "sys.stdin.readline()\nos.kill(os.getpid(), signal.SIGKILL)",
    "an exception": "sys.stdin.readline()\nraise RuntimeError('as it happens')",
    "os._exit": "sys.stdin.readline()\nos._exit(0)",
}


@pytest.mark.slow
@pytest.mark.requirement("WORK-5", "WORK-2")
@pytest.mark.parametrize(
    ("end", "tier"),
    [*((end, "namespaces") for end in ENDS), ("kill -9", "landlock"), ("SIGTERM", "landlock")],
)
def test_no_process_and_no_folder_survives(tmp_path: Path, end: str, tier: str) -> None:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST.replace("{end}", ENDS[end]), str(tmp_path / "healkit.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "HEALKIT_ISOLATION": tier},
    )
    assert host.stdout.readline().strip() == "ready"
    children = psutil.Process(host.pid).children(recursive=True)
    assert end == "SIGTERM" or any("forkserver" in command_of(child) for child in children)
    host.communicate("\n", timeout=30)
    wait_until(lambda: running(children) == [])
    wait_until(lambda: not list(BASE.glob(f"{host.pid}-*")))


STARTS = """
import os, subprocess, sys, time
def starts(how: str, daemon: bool):
    if daemon:
        code = "import os, time; os.fork() and os._exit(0); os.setsid(); print(os.getpid(), flush=True); os.fork(); time.sleep(300)"
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
        mcp.host.started(int(child.stdout.readline()))
    else:
        child = subprocess.Popen(["sh", "-c", "sleep 300 & sleep 300"], stdout=subprocess.PIPE)
        mcp.host.started(child.pid)
    if how == "dies":
        os.kill(os.getpid(), 9)
    if how == "hangs":
        time.sleep(300)
    return 1 / (how != "fails")
"""


@pytest.mark.parametrize(
    ("how", "daemon", "mode"),
    [
        ("returns", False, "worker"),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in [
                ("fails", True, "worker"), ("hangs", True, "worker"), ("dies", True, "worker"), ("returns", True, "subprocess"),
                ("hangs", True, "subprocess"), ("dies", False, "subprocess"),
            ]
        ),
    ],
)  # fmt: skip
def test_what_a_tool_starts_without_a_boundary_ends_with_its_run(
    tmp_path: Path, how: str, daemon: bool, mode: Mode
) -> None:
    """S8: daemons, which start a session of their own, outlived the run.

    docs/isolation.md names the exception: no process is left that knows of the daemons of a subprocess that dies.
    """
    with Healkit(tmp_path / "x.db", config=Config(isolation="process", start_timeout_s=30)) as healkit:
        family: list[psutil.Process] = []

        def started(pid: int) -> None:
            shell = psutil.Process(pid)
            family.extend([shell, *wait_until(shell.children)])

        healkit.provide(started)
        healkit.vault.add("starts", STARTS)
        arguments = {"how": how, "daemon": daemon}
        execution = healkit.execute("starts", arguments=arguments, mode=mode, timeout=2)
        assert execution.ok == (how == "returns")
        assert len(family) >= 2
        wait_until(lambda: running(family) == [])


@pytest.mark.slow
def test_a_forked_child_leaves_its_parents_workers_alone_and_has_its_own(tmp_path: Path) -> None:
    end = (
        "pid = os.fork()\nif pid == 0:\n    with Healkit(sys.argv[1], config=config) as mine:\n"
        "        os._exit(mine.execute_tool('one'))\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "print(status, hk.execute_tool('one'), flush=True)\n"
    )
    done = python(HOST.replace("{end}", end), tmp_path / "healkit.db", warnings="ignore")
    assert done.stdout.split() == ["ready", "1", "1"], done.stderr


@pytest.mark.requirement("WORK-5")
def test_a_spare_is_ready_is_never_used_twice_and_is_replaced(tmp_path: Path) -> None:
    config = Config(start_timeout_s=30)
    with Healkit(tmp_path / "x.db", config=config) as healkit:
        warm_up(config)
        healkit.vault.add("pid", "import os\ndef pid():\n    return [os.getpid(), os.getcwd()]\n")
        seen = []
        for _ in range(4):
            seen.append(tuple(healkit.execute_tool("pid")))
            warm_up(config)
        assert len(set(seen)) == 4


def test_a_forked_worker_is_known_by_its_number_on_this_machine() -> None:
    """S3: the host looks into /proc by it; the fork server has another number for it, in a namespace of its own."""
    config = Config(start_timeout_s=30)
    warm_up(config)

    async def spares() -> list[tuple[int, int]]:
        found = [spare for each in background.pool_for(config)._spares.values() for spare in each]
        return [(spare.process.pid, spare.process.pidfd) for spare in found if spare.fork_server is not None]

    told = background.loop.submit(spares()).result(timeout=60)
    assert told
    assert [f"Pid:\t{pid}" in Path(f"/proc/self/fdinfo/{fd}").read_text() for pid, fd in told] == [
        True
    ] * len(told)


@pytest.mark.slow
def test_a_spare_for_another_scratch_limit_is_not_used(tmp_path: Path) -> None:
    small, large = (Config(start_timeout_s=30, scratch_mb=limit_mb) for limit_mb in (20, 40))
    with (
        Healkit(tmp_path / "x.db", config=small) as first,
        Healkit(tmp_path / "x.db", config=large) as second,
    ):
        first.vault.add("write", "def write():\n    open('x', 'wb').write(bytes(30 << 20))\n")
        for healkit, fits in ((first, False), (second, True), (second, True), (first, False)):
            warm_up(healkit.config)
            assert healkit.execute("write").ok is fits


@pytest.mark.slow
def test_a_fork_server_that_dies_is_replaced(tmp_path: Path) -> None:
    config = Config(start_timeout_s=30)
    with Healkit(tmp_path / "x.db", config=config) as healkit:
        warm_up(config)
        healkit.vault.add("one", "def one():\n    return 1\n")
        killed = found_below("healkit.core.workers.inside.forkserver_main")
        for child in killed:
            with contextlib.suppress(psutil.NoSuchProcess):  # it went with the one around it
                child.kill()
        wait_until(lambda: running(killed) == [])
        background.loop.submit(asyncio.sleep(0.1)).result()  # the loop has heard of it
        assert [healkit.execute_tool("one") for _ in range(3)] == [1, 1, 1]
        assert healkit.log.count(status="FAILURE") == 0


#: What a notebook did before it unloads the extension: magics on the default database, or a Healkit of its own.
UNLOADED = {
    "magics": "    shell.run_cell_magic('tool', 'one', 'def one():\\n    return 1\\n')\n"
    "    assert shell.run_line_magic('run_tool', 'one') == 1\n",
    "a Healkit of its own": "    from healkit import Healkit\n"
    "    with Healkit('own.db') as hk:\n"
    "        hk.vault.add('one', 'def one():\\n    return 1\\n')\n"
    "        assert hk.execute_tool('one') == 1\n",
}


@pytest.mark.slow
@pytest.mark.requirement("FACE-1")
@pytest.mark.parametrize("by", UNLOADED.values(), ids=UNLOADED)
def test_unloading_the_extension_leaves_no_thread_and_no_process(tmp_path: Path, by: str) -> None:
    script = (
        "import threading, psutil\nfrom IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\nbefore = threading.active_count()\n"
        "for _ in range(2):\n"
        f"    shell.run_line_magic('load_ext', 'healkit')\n{by}"
        "    shell.run_line_magic('unload_ext', 'healkit')\n"
        "print(threading.active_count() - before, len(psutil.Process().children(recursive=True)))\n"
    )
    done = python(script, cwd=tmp_path, env={**os.environ, "HEALKIT_DB": str(tmp_path / "x.db")})
    assert done.stdout.splitlines()[-1] == "0 0", done.stdout + done.stderr


@pytest.mark.slow
def test_twenty_executions_grow_nothing(tmp_path: Path) -> None:
    config = Config(start_timeout_s=30)
    with Healkit(tmp_path / "x.db", config=config) as healkit:
        healkit.provide(lambda: 1, "one")
        healkit.vault.add("calls", "def calls():\n    return mcp.host.one()\n")

        def run(times: int) -> tuple[int, int, int]:
            for _ in range(times):
                assert healkit.execute_tool("calls") == 1
            warm_up(config)
            gc.collect()
            process = psutil.Process()
            folders = sum(1 for _ in BASE.glob(f"{os.getpid()}-*/*"))
            return process.num_fds(), threading.active_count(), folders

        run(5)
        before = run(5)
        after = run(20)
        assert all(now <= then + 2 for now, then in zip(after, before, strict=True)), (before, after)


def warm_up(config: Config) -> None:
    """Wait until the spare is there, and retired workers are gone."""

    async def wait() -> None:
        await background.pool_for(config).warm_up(achieved_tier(config))

    background.loop.submit(wait()).result(timeout=60)
