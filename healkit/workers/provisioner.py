"""Jupyter's seam: how a restricted worker kernel is launched and killed.

Registered as `healkit-restricted` under `jupyter_client.kernel_provisioners`. jupyter_client writes the connection
file and formats the kernel's command; what process comes of it is the launcher's business.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Any

from jupyter_client.provisioning import LocalProvisioner

from healkit.workers.process import Process

Launcher = Callable[[list[str]], Awaitable[Process]]


class RestrictedProvisioner(LocalProvisioner):
    """Starts the kernel through a `launcher`, a keyword that `KernelManager.start_kernel` passes on."""

    process: Process | None = None

    @property
    def has_process(self) -> bool:
        """Whether a process was launched; asked by the manager."""
        return self.process is not None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start the process; called by the kernel manager. Raises `OSError` or what the launcher raises."""
        launcher: Launcher = kwargs["launcher"]
        self.process = await launcher(cmd)
        self.pid = self.process.pid
        return self.connection_info

    async def poll(self) -> int | None:
        """None while it runs, then its exit status; asked by the manager."""
        if self.process is None:
            return 0
        return self.process.exited.result() if self.process.exited.done() else None

    async def wait(self) -> int | None:
        """The exit status, once the process has ended; called by the manager."""
        return None if self.process is None else await self.process.exited

    async def send_signal(self, signum: int) -> None:
        """Signal the process that was started (bubblewrap's, in the `namespaces` tier); called by the manager."""
        if self.process is not None and not self.process.exited.done():
            signal.pidfd_send_signal(self.process.pidfd, signum)

    async def kill(self, restart: bool = False) -> None:
        """SIGKILL; in a process namespace everything inside dies with it. Called by the manager."""
        if self.process is not None:
            self.process.kill()

    async def terminate(self, restart: bool = False) -> None:
        """The same: a worker has nothing to say goodbye to. Called by the manager."""
        await self.kill()
