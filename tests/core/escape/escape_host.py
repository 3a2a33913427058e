"""Host for the probes, in a process of its own.

So it can run as any user.

`python escape_host.py TIER FOLDER AT_A_TIME runs` creates the probes' targets in FOLDER, and runs the batch of probes at
that tier. With `runs` it also makes the separate runs, AT_A_TIME at once. It prints one JSON object: name → result.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import platform
import queue
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import probes
from escape_runs import RUNS, Run

from healkit import Config, Healkit
from healkit.core.contracts.execution import Grants
from healkit.core.crossing import values
from healkit.core.workers.inside import seccomp
from healkit.errors import HealkitError

#: Calls that the filter leaves alone or looks into; the others' numbers are in its own tables.
_NUMBERS = {
    "x86_64": {"clone": 56, "tgkill": 234, "setresuid": 117, "setresgid": 119, "setgroups": 116, "ioctl": 16,
               "prctl": 157, "capset": 126, "capget": 125, "fallocate": 285, "inotify_init1": 294},
    "aarch64": {"clone": 220, "tgkill": 131, "setresuid": 147, "setresgid": 149, "setgroups": 159, "ioctl": 29,
                "prctl": 167, "capset": 91, "capget": 90, "fallocate": 47, "inotify_init1": 26},
}  # fmt: skip

_NEIGHBOUR = """
import os
import ipykernel.connect

def neighbour():
    with open("private.txt", "w") as file:
        file.write("another worker's")
    connection_file = ipykernel.connect.get_connection_file()
    mcp.host.meet(scratch=os.getcwd(), connection_file=connection_file,
                  sockets=sorted(n for n in os.listdir(os.path.dirname(connection_file)) if n.startswith("k-")))
"""


def main() -> None:
    """Try everything once."""
    tier, folder, at_a_time = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    config = Config(isolation=tier, start_timeout_s=60, rpc_timeout_s=100, timeout_s=60, scratch_mb=64)
    with Healkit(folder / "healkit.db", config=config) as healkit:
        found = {"batch": batch(healkit, tier, folder)}
        if tier != "process" and sys.argv[4] == "runs":
            found["runs"] = separate(healkit, at_a_time)
    sys.stdout.write(json.dumps(values.readable(found)[0]))


def batch(healkit: Healkit, tier: str, folder: Path) -> dict[str, str]:
    """All attempts in one worker, while another worker and the host's own things are there to be reached."""
    with targets_in(folder) as targets, neighbour(healkit) as met:
        targets |= {"tier": tier, "neighbour": met, "database": str(healkit.path)}
        grants = Grants(read=(targets["readable"],), write=(targets["writable"],))
        healkit.vault.add("batch", probes.batch_source(), grants=grants)
        arguments = {"targets": targets, "probes": [[probe.name, probe.code] for probe in probes.PROBES]}
        execution = healkit.execute("batch", arguments=arguments)
        assert execution.failure is None, execution.failure.traceback
        return execution.value | _lasting(folder)


def _lasting(folder: Path) -> dict[str, str]:
    """Report forbidden files that the probes left in the granted folder, whatever the probes reported."""
    left = [
        path.name
        for path in (folder / "writable").iterdir()
        if not path.is_symlink()
        and (path.stat().st_mode & 0o6000 or not (stat.S_ISREG(path.stat().st_mode) or path.is_dir()))
    ]
    return {"what was left": f"ALLOWED: {sorted(left)}" if left else "denied"}


@contextlib.contextmanager
def targets_in(folder: Path) -> Iterator[dict[str, Any]]:
    """Files, sockets and a process of the host's."""
    machine = platform.machine()
    tables = {**seccomp.DENIED, **seccomp.ABSENT, **seccomp.UNSUPPORTED, **seccomp.PRETENDED}
    column = 0 if machine == "x86_64" else 1
    outside, readable, writable = folder / "outside", folder / "readable", folder / "writable"
    for made in (outside, readable, writable):
        made.mkdir()
    for name in ("secret.txt", "victim", "deletable", "renamable", "movable"):
        (outside / name).write_text("the host's")
    (folder / "secret.txt").write_text("the host's")
    (readable / "data.txt").write_text("granted")
    (readable / "link").symlink_to(outside / "secret.txt")
    victim = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    unique = f"healkit-escape-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        streams = stack.enter_context(socket.socket(socket.AF_UNIX))
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        streams.bind(str(outside / "s"))
        datagrams.bind(str(outside / "d"))
        abstract.bind(f"\0{unique}")
        for server in (streams, abstract):
            server.listen(8)
        try:
            yield {
                "numbers": {name: n[column] for name, n in tables.items() if n[column] is not None},
                **_NUMBERS[machine],
                "secret": str(outside / "secret.txt"), "folder": str(outside), "victim": str(outside / "victim"),
                "deletable": str(outside / "deletable"), "renamable": str(outside / "renamable"),
                "movable": str(outside / "movable"), "readable": str(readable), "writable": str(writable),
                "library": os.__file__, "unique": unique, "abstract": unique, "gid": os.getgid(),
                "socket": str(outside / "s"), "datagrams": str(outside / "d"), "port": listener.getsockname()[1],
                "host_pid": os.getpid(), "pid": victim.pid, "hostname": socket.gethostname(), "disk": _disk(),
            }  # fmt: skip
        finally:
            victim.stdin.close()
            victim.wait(10)
            for place in ("/tmp", "/dev/shm"):
                Path(place, unique).unlink(missing_ok=True)


def _disk() -> str:
    """Return the device file of any disk, by its kind; one that is not there where the machine has none."""
    found = (
        e
        for e in os.scandir("/dev")
        if stat.S_ISBLK(e.stat().st_mode) and not e.name.startswith(("zram", "nbd"))
    )
    return next((entry.path for entry in found), "/dev/sda")


@contextlib.contextmanager
def neighbour(healkit: Healkit) -> Iterator[dict[str, Any]]:
    """Another worker, alive and waiting for the host's answer; yields where its things are."""
    met: queue.Queue[dict[str, Any]] = queue.Queue()
    leave = threading.Event()

    def meet(scratch: str, connection_file: str, sockets: list) -> None:
        met.put({"scratch": scratch, "connection_file": connection_file, "sockets": sockets})
        leave.wait(90)

    healkit.provide(meet)
    healkit.vault.add("neighbour", _NEIGHBOUR)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(healkit.execute, "neighbour", timeout=90)
        running.add_done_callback(lambda _: met.put({}))
        try:
            yield met.get(timeout=60) or running.result().value
        finally:
            leave.set()
        assert running.result(60).failure is None, running.result().failure.traceback


def separate(healkit: Healkit, at_a_time: int) -> dict[str, Any]:
    """Execute the runs that end their worker, or would disturb others in it; each must leave the host in health."""
    over = threading.Event()
    healkit.provide(lambda: os.getpid(), "host_pid")
    healkit.provide(lambda: over.wait(90), "stay")
    for run in RUNS:
        healkit.vault.add(run.tool, run.source, grants=run.grants)

    def one(run: Run) -> dict[str, Any]:
        try:
            execution = healkit.execute(run.tool, timeout=run.timeout_s)
        except HealkitError as error:  # no worker could be had: the host is not in health
            return {"ending": error.code, "value": None, "told": str(error), "outputs": [], "duration_ms": 0}
        failure = execution.failure
        return {
            "ending": "SUCCESS" if failure is None else failure.code,
            "value": execution.value,
            "told": "" if failure is None else f"{failure.summary}\n{failure.traceback[-3000:]}",
            "outputs": execution.outputs,
            "duration_ms": execution.duration_ms,
        }

    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool, contextlib.ExitStack() as stack:
        stack.callback(over.set)
        return {run.name: outcome for run, outcome in zip(RUNS, pool.map(one, RUNS), strict=True)}


if __name__ == "__main__":
    main()
