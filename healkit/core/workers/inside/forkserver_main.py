"""Fork server: a preloaded parent that forks workers.

It runs as `python -m healkit.core.workers.inside.forkserver_main`, inside the sandbox, with a control socket. It has
one thread, runs no tool and only reads the host's requests. Each child applies its own restrictions permanently:
scratch folder, Landlock domain, limits and seccomp filter. When the host ends, the control socket closes; then the fork
server and its children end.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import random
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn

import msgspec

from healkit.core.workers.inside import lockdown, seccomp
from healkit.core.workers.inside.cleanup import children_of

#: Maximum size of a request or an answer, which hold restrictions with their paths, in bytes.
MESSAGE_BYTES = 256 * 1024
CONTROL_VARIABLE = "HEALKIT_FORK_SERVER_PLAN"


class ForkServerPlan(msgspec.Struct, frozen=True):
    """Setup of a fork server: its control socket, and the modules to import before it forks."""

    control_fd: int
    preload: list[str]


class Fork(msgspec.Struct, frozen=True):
    """Request for one child; two descriptors come with it, the bridge and the crash file.

    `argv` is the kernel's command line after the program's name.
    """

    id: int
    restrictions: lockdown.Restrictions
    environment: dict[str, str]
    argv: list[str]


class Forked(msgspec.Struct, frozen=True, tag="forked"):
    """Message: the child exists; its pidfd comes with the message."""

    id: int
    pid: int


class Exited(msgspec.Struct, frozen=True, tag="exited"):
    """Message: a child has ended with this status; negative for a signal, as in subprocess."""

    id: int
    status: int


class Preloaded(msgspec.Struct, frozen=True, tag="preloaded"):
    """Message: the fork server is ready; `modules` is the number of imported modules."""

    modules: int


FromForkServer = Preloaded | Forked | Exited


class ForkLoop:
    """Loop of the parent: fork on request, report each end."""

    def __init__(self, plan: ForkServerPlan) -> None:
        self.control = socket.socket(fileno=plan.control_fd)
        self.children: dict[int, int] = {}
        self.adopts = False
        self.wake, wake_end = os.pipe()
        for descriptor in (plan.control_fd, self.wake, wake_end):
            os.set_inheritable(descriptor, False)
            os.set_blocking(descriptor, descriptor == plan.control_fd)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        self.wake_end = wake_end

    def serve(self) -> None:
        """Serve until the host hangs up; then the children are killed together with this process."""
        self.control.send(msgspec.json.encode(Preloaded(len(sys.modules))))
        while True:
            ready, _, _ = select.select([self.control.fileno(), self.wake], [], [])
            if self.wake in ready:
                os.read(self.wake, 4096)
                self.reap()
            if self.control.fileno() in ready and not self.fork_one():
                return

    def fork_one(self) -> bool:
        """Serve one request; return False at the end of the socket."""
        data, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE_BYTES, 4)
        if not data:
            return False
        request = msgspec.json.decode(data, type=Fork)
        if request.restrictions.tier == "process" and not self.adopts:
            self.adopts = True
            lockdown.adopt_orphans()
        pid = os.fork()
        if pid == 0:
            self.become(request, descriptors)
        pidfd = os.pidfd_open(pid)
        self.children[pid] = request.id
        socket.send_fds(self.control, [msgspec.json.encode(Forked(request.id, pid))], [pidfd])
        for descriptor in (pidfd, *descriptors):
            os.close(descriptor)
        return True

    def reap(self) -> None:
        """Report every ended child to the host; one byte in the signal pipe may stand for several."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                pid, status = ended
                if pid in self.children:
                    exited = Exited(self.children.pop(pid), os.waitstatus_to_exitcode(status))
                    self.control.send(msgspec.json.encode(exited))
        if self.adopts:
            self.end_orphans()

    def end_orphans(self) -> None:
        """Kill adopted processes: a living worker adopts its own orphans, so these come from a dead worker."""
        for pid in children_of("self"):
            if pid not in self.children:
                with contextlib.suppress(ProcessLookupError, PermissionError):  # another user's
                    os.kill(pid, signal.SIGKILL)

    def become(self, request: Fork, descriptors: list[int]) -> NoReturn:
        """Continue as the child; never returns into the parent's code."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.control.close()
            for descriptor in (self.wake, self.wake_end):
                os.close(descriptor)
            bridge, crash = descriptors
            for standard in (1, 2):
                os.dup2(crash, standard)
            os.close(crash)
            os.setsid()
            os.environ.clear()
            os.environ.update(request.environment)
            _reseed()
            restrictions = msgspec.structs.replace(request.restrictions, bridge_fd=bridge)
            layers = lockdown.enter(restrictions)
            os.chdir(restrictions.scratch)
            _kernel(restrictions, layers, request.argv)
            status = 0
        except BaseException:  # noqa: BLE001 - the last thing this process can do is to report the reason
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)


def _kernel(restrictions: lockdown.Restrictions, layers: dict[str, str], argv: list[str]) -> None:
    from healkit.core.workers.inside.kernel_main import serve

    serve(restrictions, layers, argv)


def _reseed() -> None:
    """Give the child its own random state, since it would repeat what was seeded in the parent."""
    random.seed()
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()


def preload(plan: ForkServerPlan) -> None:
    """Import what every child will need; modules that are not installed are skipped."""
    for name in plan.preload:
        _try_import(name)
    # No frontend debugs a worker. The debugger would be a fifth of all modules, and of what each fork copies.
    hidden = sys.modules.setdefault("debugpy", None)  # type: ignore[arg-type]  # None is how Python hides a module
    for name in ("healkit.core.workers.inside.kernel_main", "landlockpy"):
        _try_import(name)
    from healkit.core.workers.inside import capture

    for name in filter(None, (*capture.observers, capture.inspector)):
        _try_import(name)
    for name in _rehearse(_run_a_cell):
        _try_import(name)
    from healkit.core.workers.inside.kernel_main import prepare

    prepare()
    if hidden is None:
        del sys.modules["debugpy"]  # a tool then finds the installed one


def _run_a_cell() -> None:
    """Run a kernel's first cells in the fork server's own folder, since every worker would import the same modules."""
    from healkit.core.workers.inside.kernel_main import WorkerApp, kernel_config

    folder = os.environ["HOME"]
    app = WorkerApp.instance(config=kernel_config())
    app.initialize(["--transport=ipc", f"--ip={folder}/k", "-f", f"{folder}/connection.json"])
    app.shell.run_cell("print(1)\n[1]", store_history=False)
    app.shell.run_cell("1 / 0", store_history=False)


def _rehearse(performance: Callable[[], None]) -> list[str]:
    """Return the modules that a performance imports; it runs in a child, so that it has no other effect."""
    reading, writing = os.pipe()
    before = set(sys.modules)
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            performance()
        except BaseException:  # noqa: BLE001, S110 - the modules imported so far are still useful
            pass
        finally:
            loaded = [name for name in sys.modules if name not in before and sys.modules[name] is not None]
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(msgspec.json.encode(loaded))
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        encoded = pipe.read()
    os.waitpid(pid, 0)
    try:
        return msgspec.json.decode(encoded, type=list[str])
    except msgspec.DecodeError:
        return []


def _try_import(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception:  # noqa: BLE001, S110 - a child that needs it will get and report the same error
        pass


def main() -> None:
    """Preload, then serve."""
    plan = msgspec.json.decode(os.environ.pop(CONTROL_VARIABLE), type=ForkServerPlan)
    lockdown.die_with_parent()
    preload(plan)
    with contextlib.suppress(OSError):  # an architecture without a filter
        for shares_files in (False, True):
            seccomp.filter_for(os.getpid(), shares_files=shares_files)
    # Freeze the imported objects: a garbage collection in a child would touch, and so copy, their pages.
    gc.collect()
    gc.freeze()
    ForkLoop(plan).serve()


if __name__ == "__main__":
    main()
