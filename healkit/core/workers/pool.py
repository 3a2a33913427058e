"""Pool of workers: fork servers and warm spares.

A worker serves one execution and is never reused; only unused ones are kept warm. The pool belongs to the process, not
to a `Healkit`: several of them share fork servers and spares. If forking is not possible (no Landlock to separate
siblings, no Linux, a fork server that dies), workers start cold, which is only slower.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
from collections import defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from healkit import hooks
from healkit.config import Config
from healkit.core.contracts.execution import Grants
from healkit.core.workers.kernel import KernelWorker
from healkit.core.workers.process import ForkServer
from healkit.core.workers.sandbox import RunFolders, Sandbox, Tier
from healkit.core.workers.tiers import probe
from healkit.core.workers.worker import Retainer, SubprocessWorker
from healkit.errors import WorkerError

_RETIRE_AFTER_S = 0.005
#: A spare is made once a short execution is over, because making it takes as long as several of those, on all
#: cores.
_REFILL_AFTER_S = 0.02

C = TypeVar("C", bound="Companion")
W = TypeVar("W", KernelWorker, SubprocessWorker)


class Companion(Protocol):
    """Processes beside the workers that a part owns."""

    async def close(self) -> None:
        """End its processes."""
        ...


@dataclasses.dataclass(frozen=True)
class SandboxKey:
    """Kind of fork server: one tier, one set of mounts, and a library that it imports besides the configured ones."""

    tier: Tier
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    library: str = ""


class Pool:
    """Provides fresh workers and ends the used ones. All methods belong to healkit's event loop."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._folders = RunFolders(on_thread=True)
        self._fork_servers: dict[SandboxKey, asyncio.Task[ForkServer | None]] = {}
        self._spares: dict[SandboxKey, list[KernelWorker]] = defaultdict(list)
        self._making: dict[SandboxKey, int] = defaultdict(int)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._snapshots: Path | None = None
        self.retained: Retainer = hooks.first("retainer", retire=self.retire) or Retainer()
        self._companions: dict[Callable[[RunFolders], Any], Any] = {}

    def companion(self, kind: Callable[[RunFolders], C]) -> C:
        """Return a part's companion of the workers, made once with the pool's folders; it is closed with the pool."""
        if kind not in self._companions:
            self._companions[kind] = kind(self._folders)
        return cast("C", self._companions[kind])

    def snapshots(self) -> Path:
        """Return the folder for snapshots of notebooks, which trials may be granted; it is removed with the pool."""
        if self._snapshots is None:
            self._snapshots = self._folders.next().root
            self._snapshots.mkdir(mode=0o700, parents=True)
        return self._snapshots

    async def kernel(self, config: Config, tier: Tier, grants: Grants, library: str = "") -> KernelWorker:
        """Return a fresh kernel worker, or the spare if there is one; raise `WorkerStartFailed`.

        library: Library that the work has to import. After the first request, a spare with it is kept too; if it is not
            ready, the work gets an ordinary worker.
        """
        if grants.starts_cold:
            return await self._cold(KernelWorker, config, tier, grants)
        key = self._key(tier, grants)
        if library and library not in self._config.preload and not grants.read and not grants.write:
            loaded = dataclasses.replace(key, library=library)
            spare = self._take_spare(loaded, config)
            self._refill(loaded, config)
            if spare is not None:
                return spare
        if not grants.read and not grants.write and (spare := self._take_spare(key, config)) is not None:
            self._refill(key, config)
            return spare
        fork_server = await self._fork_server(key, grants)
        worker = await self._started(KernelWorker, self._sandbox(config, tier, grants), config, fork_server)
        if not grants.read and not grants.write:
            self._refill(key, config)
        return worker

    async def subprocess_worker(self, config: Config, tier: Tier, grants: Grants) -> SubprocessWorker:
        """Return a plain interpreter, started for this call; raise `WorkerStartFailed`."""
        if grants.starts_cold:
            return await self._cold(SubprocessWorker, config, tier, grants)
        return await self._started(SubprocessWorker, self._sandbox(config, tier, grants), config, None)

    def retire(self, worker: KernelWorker | SubprocessWorker) -> None:
        """End a worker and remove its files, in the background, after its caller has been answered."""
        self._in_background(_later(worker.close))

    async def warm_up(self, tier: Tier) -> None:
        """Start a fork server and a spare, and wait for both."""
        key = self._key(tier, Grants())
        await self._fork_server(key, Grants(), wait=True)
        self._refill(key, self._config)
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """End every process and remove every folder; safe to call twice."""
        self._closed = True
        for starting in self._fork_servers.values():
            if not starting.done():
                starting.cancel()
        spares = [spare for spares in self._spares.values() for spare in spares]
        await self.retained.close()
        for companion in self._companions.values():
            await companion.close()
        await asyncio.gather(*self._tasks, *(spare.close() for spare in spares), return_exceptions=True)
        self._spares.clear()
        fork_servers = await asyncio.gather(*self._fork_servers.values(), return_exceptions=True)
        for fork_server in fork_servers:
            if isinstance(fork_server, ForkServer):
                await fork_server.close()
        self._fork_servers.clear()
        self._folders.close()

    def abandon(self) -> None:
        """Forget the folders in a forked child: they and the processes belong to its parent."""
        self._closed = True
        self._folders.abandon()

    def _key(self, tier: Tier, grants: Grants) -> SandboxKey:
        # Landlock restricts each child separately; only mounts belong to the fork server.
        mounts = tier == "namespaces"
        return SandboxKey(tier, grants.read if mounts else (), grants.write if mounts else ())

    async def _fork_server(self, key: SandboxKey, grants: Grants, *, wait: bool = False) -> ForkServer | None:
        """Return the fork server for these workers; None while it is not ready, or if it is not possible."""
        if not self._config.fork_server or not _can_fork(key.tier):
            return None
        starting = self._fork_servers.get(key)
        if starting is None or (starting.done() and not _is_alive(starting)):
            starting = self._fork_servers[key] = asyncio.create_task(self._start_fork_server(key, grants))
        if not wait and not starting.done():
            return None  # a cold start is faster than waiting for the fork server
        return await starting

    async def _start_fork_server(self, key: SandboxKey, grants: Grants) -> ForkServer | None:
        with contextlib.suppress(WorkerError, OSError):
            preload = (*self._config.preload, key.library) if key.library else self._config.preload
            return await ForkServer.start(key.tier, self._folders.root, self._folders.next(), grants, preload)
        return None

    async def _cold(self, kind: type[W], config: Config, tier: Tier, grants: Grants) -> W:
        """Start a worker that only has some of the packages, or runs another Python."""
        sandbox = self._sandbox(config, tier, grants)
        try:
            await asyncio.to_thread(sandbox.prepare)
        except BaseException:
            sandbox.folder.remove()
            raise
        return await self._started(kind, sandbox, config, None)

    async def _started(
        self, kind: type[W], sandbox: Sandbox, config: Config, fork_server: ForkServer | None
    ) -> W:
        worker = kind(sandbox, config, fork_server)
        try:
            await worker.start()
        except WorkerError:
            if fork_server is None:
                raise
            # No work was sent yet, so nothing can run twice: try again with a cold start.
            worker = kind(dataclasses.replace(sandbox, folder=self._folders.next()), config, None)
            await worker.start()
        return worker

    def _sandbox(self, config: Config, tier: Tier, grants: Grants) -> Sandbox:
        sandbox = Sandbox(tier, self._folders.next(), grants, config.scratch_mb)
        sandbox.check_paths()
        return sandbox

    def _take_spare(self, key: SandboxKey, config: Config) -> KernelWorker | None:
        for spare in list(self._spares[key]):
            if not spare.alive:
                self._spares[key].remove(spare)
                self.retire(spare)
            elif spare.sandbox.scratch_mb == config.scratch_mb:
                self._spares[key].remove(spare)
                spare.adopt(config)
                return spare
            else:  # it is not usable, and would keep a usable one from being made
                self._spares[key].remove(spare)
                self.retire(spare)
        return None

    def _refill(self, key: SandboxKey, config: Config) -> None:
        """Make the next spare in the background, for the latest settings; never one with grants."""
        if self._closed or len(self._spares[key]) + self._making[key] >= self._config.spares:
            return
        self._making[key] += 1
        self._in_background(self._make_spare(key, config))

    async def _make_spare(self, key: SandboxKey, config: Config) -> None:
        try:
            await asyncio.sleep(_REFILL_AFTER_S)
            fork_server = await self._fork_server(key, Grants(), wait=True)
            if fork_server is None or self._closed:
                return
            with contextlib.suppress(WorkerError):
                worker = KernelWorker(self._sandbox(config, key.tier, Grants()), config, fork_server)
                await worker.start()
                if self._closed:
                    await worker.close()
                else:
                    self._spares[key].append(worker)
        finally:
            self._making[key] -= 1

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _later(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await asyncio.sleep(_RETIRE_AFTER_S)
    await close()


def _can_fork(tier: Tier) -> bool:
    """Return whether a fork server's children can be separated by Landlock, or need not be (no promised boundary)."""
    if sys.platform != "linux":
        return False
    return tier == "process" or not probe(tier).layers.get("landlock", "failed").startswith("failed")


def _is_alive(starting: asyncio.Task[ForkServer | None]) -> bool:
    fork_server = None if starting.cancelled() or starting.exception() else starting.result()
    return fork_server is not None and fork_server.alive
