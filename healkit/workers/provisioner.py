"""Jupyter's provisioner: launch and kill of a kernel.

Registered as `healkit-restricted` under `jupyter_client.kernel_provisioners`. jupyter_client writes the connection file
and formats the kernel's command; the launcher makes the process. Without a launcher, as from JupyterLab or nbclient,
the provisioner starts a kernel of its own for the whole notebook (`workers.notebook_kernel`), with what the kernel spec
grants.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

from jupyter_client.provisioning import LocalProvisioner
from traitlets import Integer, List, Unicode

from healkit.config import Config
from healkit.contracts.execution import Grants
from healkit.errors import WorkerStartFailed
from healkit.workers.notebook_kernel import NotebookKernel, granted_paths
from healkit.workers.process import Process, off_loop

Launcher = Callable[[list[str]], Awaitable[Process]]


class RestrictedProvisioner(LocalProvisioner):
    """Starts the kernel through a `launcher`, a keyword that `KernelManager.start_kernel` passes on; else by itself.

    The traits come from `metadata.kernel_provisioner.config` of the kernel spec and are for kernels that it starts by
    itself. None stands for the configuration's own value, for `cpu_s` for no limit: a notebook has many cells.
    """

    read = List(Unicode(), help="Paths the notebook may read; relative ones start at its folder.")
    write = List(Unicode(), help="Paths it may read and write; relative ones start at its folder.")
    memory_mb = Integer(None, allow_none=True, min=1, help="What it may add to the bare kernel, in MiB.")
    cpu_s = Integer(None, allow_none=True, min=1, help="Processor time of the whole notebook, in seconds.")
    scratch_mb = Integer(None, allow_none=True, min=1, help="The size of its scratch folder, in MiB.")

    process: Process | subprocess.Popen[bytes] | None = None
    _kernel: NotebookKernel | None = None

    @property
    def has_process(self) -> bool:
        """True once a process was launched; asked by the manager."""
        return self.process is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Make the manager speak IPC from a folder of the kernel's own; called by it before each start.

        Raises `HealkitError` where there is no boundary, or a grant that does not exist.
        """
        if "launcher" in kwargs:
            return await super().pre_launch(**kwargs)  # type: ignore[no-any-return]  # jupyter_client carries no types
        if self.parent is None:
            raise WorkerStartFailed("A restricted kernel can only be started by a kernel manager.")
        if self._kernel is None:
            self._kernel = await asyncio.to_thread(self._new_kernel, kwargs.get("cwd") or os.curdir)
        try:
            await asyncio.to_thread(self._kernel.prepare)
            # Override the manager's choice: the kernel has no network, and a signal would end bubblewrap.
            self.parent.transport, self.parent.ip = "ipc", self._kernel.ip
            self.parent.cache_ports = False
            self.kernel_spec.interrupt_mode = "message"
            return await super().pre_launch(**kwargs)  # type: ignore[no-any-return]  # jupyter_client carries no types
        except BaseException:
            await self._close()
            raise

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start the process; called by the kernel manager. Raises `OSError` or what the launcher raises."""
        launcher: Launcher | None = kwargs.get("launcher")
        if launcher is not None:
            self.process = await launcher(cmd)
        else:
            self.process = await self._launch_own(cmd, kwargs["env"])
        self.pid = self.process.pid
        return self.connection_info

    async def poll(self) -> int | None:
        """None while it runs, then its exit status; asked by the manager."""
        if self.process is None:
            return 0
        if isinstance(self.process, subprocess.Popen):
            return self.process.poll()
        return self.process.exited.result() if self.process.exited.done() else None

    async def wait(self) -> int | None:
        """Return the exit status, once the process has ended; called by the manager."""
        if self._kernel is not None and self.process is not None:
            status = await self._kernel.wait()
            self.process = None  # the manager then knows that there is nothing to end
            return status
        return await self.process.exited if isinstance(self.process, Process) else None

    async def send_signal(self, signum: int) -> None:
        """Signal the process that was started (bubblewrap's, in the `namespaces` tier); called by the manager."""
        if isinstance(self.process, subprocess.Popen):
            self.process.send_signal(signum)
        elif self.process is not None and not self.process.exited.done():
            signal.pidfd_send_signal(self.process.pidfd, signum)

    async def kill(self, restart: bool = False) -> None:
        """SIGKILL; in a process namespace everything inside dies with it. Called by the manager."""
        if self.process is not None:
            self.process.kill()

    async def terminate(self, restart: bool = False) -> None:
        """Kill it: a worker has nothing to save. Called by the manager."""
        await self.kill()

    async def cleanup(self, restart: bool = False) -> None:
        """Remove a standalone kernel's folders, unless it is about to be started again; called by the manager."""
        await super().cleanup(restart=restart)
        if not restart:
            await self._close()

    def _new_kernel(self, folder: str) -> NotebookKernel:
        """Make the kernel of the tier this machine can enforce; tries that out, so not on the loop."""
        folder = os.path.abspath(folder)
        config = Config.from_environment()
        if self.scratch_mb is not None:
            config = dataclasses.replace(config, scratch_mb=self.scratch_mb)
        grants = Grants(
            read=granted_paths(self.read, folder),
            write=granted_paths(self.write, folder),
            memory_mb=self.memory_mb,
            cpu_s=self.cpu_s,
        )
        return NotebookKernel(config, grants, folder)

    async def _launch_own(self, cmd: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start with the kernel's own arguments, its own connection file, and the variables its spec names."""
        kernel = self._kernel
        assert kernel is not None
        variables = {name: env[name] for name in self.kernel_spec.env if name in env}
        try:
            await kernel.start(cmd[3:], variables, self.parent.connection_file)
        except BaseException:
            await self._close()
            raise
        assert kernel.popen is not None
        return kernel.popen

    async def _close(self) -> None:
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            self.process = None
            await off_loop(kernel.close)  # `jupyter run` shuts down at exit, without threads
