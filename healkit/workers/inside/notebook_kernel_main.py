"""Kernel of a whole notebook, restricted like a worker.

It has no host behind a bridge.

A frontend drives it over the Jupyter protocol, so it serves any number of cells. Its limits are in force from its
start, and interrupts reach the cell that runs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import ipykernel.debugger
import msgspec
from ipykernel.ipkernel import IPythonKernel

from healkit.workers.inside import lockdown
from healkit.workers.inside.kernel_main import sealed_app

OPTIONS_VARIABLE = "HEALKIT_STANDALONE"

#: No limit in practice: about thirty years of processor time.
_FOREVER_S = 10**9


class Options(msgspec.Struct, frozen=True):
    """Settings of a notebook's kernel besides its restrictions.

    `ready_fd` is a pipe for the one message that it is locked down, with the layers; `cpu_s` None sets no limit;
    `folder` is where the cells run, scratch where it is empty.
    """

    ready_fd: int
    memory_bytes: int
    cpu_s: int | None
    folder: str


class InterruptibleKernel(IPythonKernel):  # type: ignore[misc]  # ipykernel carries no types
    """IPython kernel that interrupts only itself."""

    def _send_interrupt_children(self) -> None:
        """Raise KeyboardInterrupt in the running cell; called by ipykernel for an interrupt request.

        ipykernel would signal its process group, which a worker may not. The main thread by name, so that it is the one
        that is woken from a system call.
        """
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        # ipykernel's handler cancels a cell that awaits only when the loop wakes up for something else.
        self.io_loop.add_callback(lambda: None)


def serve(restrictions: lockdown.Restrictions, layers: dict[str, str], argv: list[str]) -> None:
    """Start the kernel, seal the process, say so, serve; returns when the kernel is shut down."""
    options = msgspec.json.decode(os.environ.pop(OPTIONS_VARIABLE), type=Options)
    os.set_inheritable(options.ready_fd, False)
    # The debugger needs a TCP port; report it as absent, so that frontends do not offer it.
    ipykernel.debugger._is_debugpy_available = False
    app = sealed_app(restrictions, layers, argv, kernel_class=InterruptibleKernel)
    lockdown.limit_tool(options.memory_bytes, options.cpu_s or _FOREVER_S)
    if options.folder:
        os.chdir(options.folder)
    sys.path.insert(0, "")  # what lies beside the notebook can be imported, as in any kernel
    os.write(options.ready_fd, msgspec.json.encode(layers))
    os.close(options.ready_fd)
    app.start()
