"""The worker's kernel: ipykernel's own, locked down before it serves."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import warnings
from typing import Any

import zmq
from ipykernel.kernelapp import IPKernelApp
from traitlets.config import Config

from healkit.contracts import rpc
from healkit.workers.inside import lockdown
from healkit.workers.inside.runner import Runner

#: The name in the kernel's namespace that the host's one cell calls.
RUNNER_NAME = "__healkit_runner__"


class WorkerApp(IPKernelApp):
    """An IPython kernel that gives everything up between binding its sockets and its first message."""

    name = "healkit-worker"

    def init_signal(self) -> None:
        """Leave signals alone: interrupts arrive as messages, time limits as alarms. Called by ipykernel."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def serve(policy: lockdown.Policy, layers: dict[str, str], argv: list[str]) -> None:
    """Start the kernel, seal the process, tell the host, serve; returns when the kernel ends."""
    # A copy from before ipykernel redirects the descriptor: what is written here survives a crash.
    crash_fd = os.dup(2)
    faulthandler.enable(file=crash_fd)
    bridge = socket.socket(fileno=policy.bridge_fd)
    os.set_inheritable(policy.bridge_fd, False)
    # A pipe for the output of subprocesses, over TCP: a worker has neither.
    warnings.filterwarnings("ignore", message="Couldn't bind IOPub Pipe")
    # Above it pyzmq sends without copying, for which it makes another socket: libzmq aborts when that is refused.
    zmq.COPY_THRESHOLD = 2**31 - 1
    app = WorkerApp.instance(config=kernel_config())
    app.initialize(argv)
    layers |= lockdown.seal(policy)
    runner = Runner(bridge, crash_fd)
    app.shell.user_ns[RUNNER_NAME] = runner
    runner.endpoint.send(rpc.Ready(os.getpid(), layers))
    app.start()


def kernel_config() -> Any:
    """Traits of a kernel that lives for one cell: no history file, no start-up files."""
    config = Config()
    config.HistoryManager.enabled = False
    config.IPKernelApp.outstream_class = "healkit.workers.inside.streams.KernelStream"
    config.IPKernelApp.log_level = "CRITICAL"
    config.ProfileDir.location = os.path.join(os.environ["HOME"], ".ipython")
    os.makedirs(config.ProfileDir.location, exist_ok=True)
    return config
