"""Probe of the lockdown: try what must be impossible.

It runs as `python -m healkit.core.workers.inside.probe_main TARGETS`. The host's probe starts it in exactly the sandbox
that a tool would get. TARGETS is JSON: a file of the host, a folder of the host, a listening socket's path, the host's
process id. It prints one JSON object: layer → what was done, attempt → "denied" or "ALLOWED".
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from collections.abc import Callable

import msgspec

from healkit.core.workers.inside import lockdown


class Targets(msgspec.Struct, frozen=True):
    """Targets on the host for the attempts."""

    file: str
    folder: str
    socket: str
    host_pid: int


class Report(msgspec.Struct, frozen=True):
    """Layers that were put in force, and attempts that were still possible."""

    layers: dict[str, str]
    attempts: dict[str, str]


def attempt_all(targets: Targets) -> dict[str, str]:
    """Really try each forbidden action."""

    def read() -> None:
        with open(targets.file, "rb") as file:
            file.read(1)

    def write() -> None:
        with open(os.path.join(targets.folder, "written-by-a-worker"), "wb") as file:
            file.write(b"x")

    def mode() -> None:
        before = os.stat(targets.file)
        os.chmod(targets.file, before.st_mode & 0o777)
        if os.stat(targets.file).st_ctime_ns == before.st_ctime_ns:  # reported as done, but not done
            raise PermissionError

    def network() -> None:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()

    def unix_socket() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(targets.socket)

    def process() -> None:
        if os.fork() == 0:
            os._exit(0)
        os.wait()

    def trace() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(0, 0, 0, 0) == -1:  # PTRACE_TRACEME
            raise OSError(ctypes.get_errno(), "ptrace")

    return {
        "read one of your files": _try(read),
        "write into one of your folders": _try(write),
        "change the mode of one of your files": _try(mode),
        "open a network socket": _try(network),
        "connect to one of your sockets": _try(unix_socket),
        "start a process": _try(process),
        "trace a process": _try(trace),
        "signal your process": _try(lambda: os.kill(targets.host_pid, 0)),
    }


def _try(action: Callable[[], None]) -> str:
    try:
        action()
    except OSError:
        return "denied"
    return "ALLOWED"


def main() -> None:
    """Lock down exactly like a worker, then try."""
    restrictions = msgspec.json.decode(
        os.environ.pop(lockdown.RESTRICTIONS_VARIABLE), type=lockdown.Restrictions
    )
    layers = lockdown.enter(restrictions) | lockdown.seal(restrictions)
    targets = msgspec.json.decode(sys.argv[1], type=Targets)
    sys.stdout.write(msgspec.json.encode(Report(layers, attempt_all(targets))).decode())


if __name__ == "__main__":
    main()
