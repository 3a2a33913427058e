"""Restricted kernel of a notebook, which Jupyter starts.

`RestrictedProvisioner` is registered as `healkit-restricted` under `jupyter_client.kernel_provisioners`. For
JupyterLab, nbclient and every other kernel manager, it starts one kernel for the whole notebook, with the grants of the
kernel spec. The kernel runs in a sandbox, without a host at a bridge. It is not preloaded, starts once for each
notebook, and ends with its kernel manager or with the manager's process.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import logging
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Integer, List, Unicode

from healkit.config import MIB, Config
from healkit.core.contracts.execution import Grants
from healkit.core.workers.process import kill_group, off_loop
from healkit.core.workers.sandbox import RunFolders, Sandbox
from healkit.core.workers.tiers import (
    LOOK_EVERY_S,
    achieved_tier,
    is_bounded,
    is_over,
    pause_after,
    require_restricted,
)
from healkit.errors import IsolationUnavailable, WorkerStartFailed, WorkerUnusable


class RestrictedProvisioner(LocalProvisioner):
    """Starts, signals and ends the kernel of one notebook, for its kernel manager.

    The traits come from `metadata.kernel_provisioner.config` of the kernel spec. None stands for the configured value;
    for `cpu_s` it means no limit, because a notebook has many cells.
    """

    read = List(Unicode(), help="Paths the notebook may read; relative ones start at its folder.")
    write = List(Unicode(), help="Paths it may read and write; relative ones start at its folder.")
    memory_mb = Integer(
        None, allow_none=True, min=1, help="Memory that it may use beyond the bare kernel, in MiB."
    )
    cpu_s = Integer(None, allow_none=True, min=1, help="Processor time of the whole notebook, in seconds.")
    scratch_mb = Integer(None, allow_none=True, min=1, help="The size of its scratch folder, in MiB.")

    process: subprocess.Popen[bytes] | None = None
    _kernel: NotebookKernel | None = None

    @property
    def has_process(self) -> bool:
        """True once a process was launched; read by the manager."""
        return self.process is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Make the manager use IPC from the kernel's own folder; called by the manager before each start.

        Raises `HealkitError` if there is no boundary, or for a grant that does not exist.
        """
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
        """Start the process; called by the kernel manager. Raises `OSError` and `WorkerStartFailed`.

        The kernel gets its own arguments, its own connection file, and the variables of its spec.
        """
        kernel = self._kernel
        assert kernel is not None
        variables = {name: kwargs["env"][name] for name in self.kernel_spec.env if name in kwargs["env"]}
        try:
            await kernel.start(cmd[3:], variables, self.parent.connection_file)
        except BaseException:
            await self._close()
            raise
        assert kernel.popen is not None
        self.process, self.pid = kernel.popen, kernel.popen.pid
        return self.connection_info

    async def poll(self) -> int | None:
        """None while it runs, then its exit status; read by the manager."""
        return 0 if self.process is None else self.process.poll()

    async def wait(self) -> int | None:
        """Return the exit status, once the process has ended; called by the manager."""
        if self._kernel is None or self.process is None:
            return None
        status = await self._kernel.wait()
        self.process = None  # the manager then knows that there is nothing to end
        return status

    async def send_signal(self, signum: int) -> None:
        """Signal the process that was started (bubblewrap's, in the `namespaces` tier); called by the manager."""
        if self.process is not None:
            self.process.send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        """SIGKILL; in a process namespace it ends everything inside. Called by the manager."""
        if self.process is not None:
            kill_group(self.process)

    async def terminate(self, restart: bool = False) -> None:
        """Kill it: a worker has nothing to save. Called by the manager."""
        await self.kill()

    async def cleanup(self, restart: bool = False) -> None:
        """Remove a standalone kernel's folders, unless it restarts now; called by the manager."""
        await super().cleanup(restart=restart)
        if not restart:
            await self._close()

    def _new_kernel(self, folder: str) -> NotebookKernel:
        """Make the kernel of the tier that this machine can enforce; tests the tier, so it must not run on the loop."""
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

    async def _close(self) -> None:
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            self.process = None
            await off_loop(kernel.close)  # `jupyter run` shuts down at exit, without threads


_MODULE = "healkit.core.workers.inside"
#: Same as `inside.notebook_kernel_main.OPTIONS_VARIABLE`, which the host does not import, to avoid ipykernel.
_OPTIONS_VARIABLE = "HEALKIT_STANDALONE"
#: Jupyter's own limit for the start of a kernel.
_START_TIMEOUT_S = 60.0
_POLL_S = 0.05
_LAST_WORDS_BYTES = 4000
_log = logging.getLogger(__name__)


class NotebookKernel:
    """Kernel process of one notebook and its folders; `close` removes all of it."""

    def __init__(self, config: Config, grants: Grants, folder: str) -> None:
        """`folder` is where the cells run, if the grants reach it; raises `IsolationUnavailable` without a boundary."""
        tier = achieved_tier(config)
        if tier == "process":
            raise IsolationUnavailable(
                "HEALKIT_ISOLATION='process' is not a boundary, but a restricted notebook needs one.",
                hint="Unset it, or choose the ordinary Python kernel.",
            )
        self._folders = RunFolders()
        self._memory_bytes = (grants.memory_mb or config.memory_mb) * MIB
        folder = os.path.realpath(folder)
        self._work_folder = folder if _within(folder, (*grants.read, *grants.write)) else ""
        self.sandbox = Sandbox(tier, self._folders.next(), grants, config.scratch_mb)
        self.popen: subprocess.Popen[bytes] | None = None
        self._closed = threading.Event()

    @property
    def ip(self) -> str:
        """Prefix of its socket files; Jupyter's `ip` of the IPC transport."""
        return str(self.sandbox.folder.ipc / "k")

    @property
    def connection_file(self) -> Path:
        """Own copy of the connection file: the kernel cannot see the manager's."""
        return self.sandbox.folder.ipc / "connection.json"

    def prepare(self) -> None:
        """Empty folders, for the first start and for each restart."""
        self.sandbox.folder.remove()
        self.sandbox.folder.create()

    async def start(self, arguments: list[str], environment: dict[str, str], connection_file: str) -> None:
        """Start it and check its restrictions; raises `WorkerStartFailed`, and the caller closes it.

        `arguments` are the command's after the module, `environment` the kernel spec's own variables. `connection_file`
        is the manager's; the kernel gets a copy of it.
        """
        arguments = self._with_own_file(arguments, connection_file)
        ready, theirs = os.pipe()
        try:
            try:
                self.popen = await self._spawn(arguments, environment, theirs)
            finally:
                os.close(theirs)
            await _readable(ready)
            report = os.read(ready, 64 * 1024)
        except (OSError, TimeoutError) as error:
            raise self._failed(str(error) or f"it was not ready within {_START_TIMEOUT_S:g} s") from error
        finally:
            os.close(ready)
        if not report:
            raise self._failed("its process ended")
        layers = msgspec.json.decode(report, type=dict[str, str])
        await asyncio.to_thread(require_restricted, self.sandbox, layers, self.popen.pid)
        if not is_bounded(self.sandbox, layers):
            threading.Thread(
                target=self._limit_disk, args=(self.popen,), name="healkit-disk", daemon=True
            ).start()

    def _limit_disk(self, popen: subprocess.Popen[bytes]) -> None:
        """Stop the kernel if it has written too much; runs on a thread, because managers change loops."""
        pause_s = LOOK_EVERY_S
        while not self._closed.wait(pause_s) and popen.returncode is None:
            began = time.perf_counter()
            if is_over(self.sandbox, popen.pid):
                _log.warning(
                    "The kernel of a restricted notebook was stopped: its scratch folder held more than %d MiB.",
                    self.sandbox.scratch_mb,
                )
                kill_group(popen)
                return
            pause_s = pause_after(time.perf_counter() - began)

    async def wait(self) -> int:
        """Return its exit status, once it has ended."""
        assert self.popen is not None
        while (status := self.popen.poll()) is None:  # noqa: ASYNC110 - managers change loops, as an event may not
            await asyncio.sleep(_POLL_S)
        return status

    def last_words(self) -> str:
        """Return the end of its output that no frontend sees."""
        return self.sandbox.folder.last_words(_LAST_WORDS_BYTES).strip()

    def close(self) -> None:
        """Kill what still runs and remove the folders; safe to call twice."""
        self._closed.set()
        if self.popen is not None:
            kill_group(self.popen)
            self.popen.wait()
        self.sandbox.folder.remove()
        self._folders.close()

    def _with_own_file(self, arguments: list[str], connection_file: str) -> list[str]:
        """Copy the connection file to where the kernel can see it, and return its path there."""
        shutil.copyfile(connection_file, self.connection_file)
        replacements = {os.path.realpath(connection_file): str(self.connection_file)}
        return [replacements.get(argument, argument) for argument in arguments]

    async def _spawn(
        self, arguments: list[str], environment: dict[str, str], ready_fd: int
    ) -> subprocess.Popen[bytes]:
        options = {
            "ready_fd": ready_fd,
            "memory_bytes": self._memory_bytes,
            "cpu_s": self.sandbox.grants.cpu_s,
            "folder": self._work_folder,
        }
        variables = {
            **environment,
            **self.sandbox.environment(-1),
            _OPTIONS_VARIABLE: msgspec.json.encode(options).decode(),
        }
        command = self.sandbox.command([sys.executable, "-m", _MODULE, *arguments])

        def spawn() -> subprocess.Popen[bytes]:
            with self.sandbox.folder.crash_file.open("wb") as crash_file:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=crash_file,
                    stderr=crash_file,
                    env=variables,
                    cwd=self.sandbox.folder.scratch,
                    pass_fds=(ready_fd,),
                    start_new_session=True,
                )

        return await asyncio.wrap_future(_Spawner.current().submit(spawn))

    def _failed(self, reason: str) -> WorkerStartFailed:
        words = self.last_words()
        detail = f"\nIts last output:\n{words}" if words else ""
        return WorkerStartFailed(
            f"The restricted kernel could not be started: {reason}.{detail}", hint="Run `healkit doctor`."
        )


class _Spawner:
    """A thread that starts processes and lives as long as this process.

    A kernel is killed when the thread that started it ends, so that it cannot outlive its server. But a kernel manager
    may be used from a short-lived thread.
    """

    _current: _Spawner | None = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._work: queue.SimpleQueue[
            tuple[Callable[[], subprocess.Popen[bytes]], concurrent.futures.Future[subprocess.Popen[bytes]]]
        ] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="healkit-spawner", daemon=True).start()

    @classmethod
    def current(cls) -> _Spawner:
        """Return the thread of this process; a forked child has lost its parent's thread and gets its own."""
        with cls._lock:
            if cls._current is None or cls._current.pid != os.getpid():
                cls._current = cls()
            return cls._current

    def submit(
        self, spawn: Callable[[], subprocess.Popen[bytes]]
    ) -> concurrent.futures.Future[subprocess.Popen[bytes]]:
        """Call it on the thread."""
        future: concurrent.futures.Future[subprocess.Popen[bytes]] = concurrent.futures.Future()
        self._work.put((spawn, future))
        return future

    def _run(self) -> None:
        while True:
            spawn, future = self._work.get()
            try:
                future.set_result(spawn())
            except OSError as error:
                future.set_exception(error)
            del spawn, future  # drop the references before the next wait


def granted_paths(paths: list[str], folder: str) -> tuple[str, ...]:
    """Absolute paths; relative ones start at the notebook's folder.

    Raises `WorkerStartFailed` for a path that does not exist or has become a link: a notebook that may write beside it
    could have put the link there.
    """
    absolute_paths = []
    for path in paths:
        named = os.path.normpath(os.path.join(os.path.realpath(folder), os.path.expanduser(path)))
        if not os.path.exists(named):
            problem = f"there is no {named!r}"
        elif (real := os.path.realpath(named)) != named:
            problem = f"that leads to {real!r}"
        else:
            absolute_paths.append(named)
            continue
        raise WorkerUnusable(
            f"The kernel spec grants {path!r}, but {problem}.",
            hint="Correct that, or run `healkit kernelspec install` again with other grants.",
        )
    return tuple(absolute_paths)


def _within(folder: str, grants: tuple[str, ...]) -> bool:
    """Return whether the folder is one of them or lies inside one."""
    return any(Path(folder).is_relative_to(grant) for grant in grants)


async def _readable(fd: int) -> None:
    """Wait until there is something to read, or its end; raises `TimeoutError`."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            await ready.wait()
    finally:
        loop.remove_reader(fd)
