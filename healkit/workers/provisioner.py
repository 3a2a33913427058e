"""Jupyter's seam: how a restricted worker kernel is launched and killed.

Registered as `healkit-restricted` under `jupyter_client.kernel_provisioners`. jupyter_client writes the
connection file and formats the kernel's command; this puts the sandbox around it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from typing import Any

from jupyter_client.provisioning import KernelProvisionerBase, LocalProvisioner

from healkit.workers.limits import Sandbox


class RestrictedProvisioner(LocalProvisioner):
    """Starts the kernel inside a `Sandbox`, with one end of the bridge, and kills it through a pidfd.

    The launch takes two extra keywords, `sandbox` and `bridge_fd`, which `KernelManager.start_kernel` passes on.
    """

    process: subprocess.Popen[bytes] | None
    pidfd: int | None = None
    _status: int | None = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start the process; called by the kernel manager. Raises `OSError` when the command cannot be started."""
        sandbox: Sandbox = kwargs["sandbox"]
        bridge_fd: int = kwargs["bridge_fd"]
        with sandbox.folder.crash_file.open("wb") as crash_file:
            # Spawned from the loop's own thread, which lives as long as the host: bubblewrap's --die-with-parent
            # is tied to the thread that spawns it.
            self.process = subprocess.Popen(  # noqa: ASYNC220 - a few milliseconds, and it must be this thread
                sandbox.command(cmd),
                stdin=subprocess.DEVNULL,
                stdout=crash_file,
                stderr=crash_file,
                env=sandbox.environment(bridge_fd),
                cwd=sandbox.folder.scratch,
                pass_fds=(bridge_fd,),
                start_new_session=True,
            )
        self.pid = self.process.pid
        self.pidfd = os.pidfd_open(self.pid)
        return self.connection_info

    async def send_signal(self, signum: int) -> None:
        """Signal the process that was started (bubblewrap's, in the `namespaces` tier); called by the manager."""
        if self.process is not None and self.pidfd is not None and self.process.poll() is None:
            signal.pidfd_send_signal(self.pidfd, signum)

    async def kill(self, restart: bool = False) -> None:
        """SIGKILL; in a process namespace everything inside dies with it. Called by the manager."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """The same: a worker has nothing to say goodbye to. Called by the manager."""
        await self.kill()

    async def wait(self) -> int | None:
        """The exit status, as subprocess reports it, once the process has ended; called by the manager."""
        if self.process is not None:
            if self.pidfd is not None:
                await _readable(self.pidfd)
                os.close(self.pidfd)
                self.pidfd = None
            self._status = self.process.wait()
            self.process = None
        return self._status

    def _finalize_env(self, env: dict[str, str]) -> None:
        """Nothing to take out: the sandbox brings an environment of its own. Called by the manager."""
        KernelProvisionerBase._finalize_env(self, env)


async def _readable(fd: int) -> None:
    """Until the descriptor can be read, which for a pidfd means that the process has ended."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(fd)
