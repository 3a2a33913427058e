"""Workers at hand: a nursery for each kind of sandbox, and a warm spare.

A worker serves one execution and is never taken back; what is kept warm is one that nobody has used. The pool is of
the process, not of a `Healkit`: several of them share nurseries and spares. Where forking cannot work (no Landlock to
tell siblings apart, no Linux, a nursery that dies) workers start cold, which is slower and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from healkit.config import Config
from healkit.contracts.records import Grants
from healkit.errors import WorkerError
from healkit.workers.folders import RunFolders
from healkit.workers.kept import KeptWorkers
from healkit.workers.kernel import KernelWorker
from healkit.workers.light import LightWorker
from healkit.workers.limits import Sandbox, Tier
from healkit.workers.nursery import Nursery
from healkit.workers.probe import probe
from healkit.workers.trials import Templates

_RETIRE_AFTER_S = 0.005
#: A spare is made once a short execution is over: making it takes as long as several of those, on all cores.
_REFILL_AFTER_S = 0.02

W = TypeVar("W", KernelWorker, LightWorker)


@dataclasses.dataclass(frozen=True)
class Brood:
    """What a nursery is for: one tier and one set of mounts."""

    tier: Tier
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()


class Pool:
    """Hands out fresh workers and takes the used ones away. All methods belong to healkit's event loop."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._folders = RunFolders()
        self._nurseries: dict[Brood, asyncio.Task[Nursery | None]] = {}
        self._spares: dict[Brood, list[KernelWorker]] = defaultdict(list)
        self._making: dict[Brood, int] = defaultdict(int)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self.kept = KeptWorkers(self.retire)
        self.templates = Templates(self._folders)

    async def kernel(self, config: Config, tier: Tier, grants: Grants) -> KernelWorker:
        """A fresh kernel worker, the spare if there is one; raises `WorkerStartFailed`."""
        if grants.starts_cold:
            return await self._cold(KernelWorker, config, tier, grants)
        brood = self._brood(tier, grants)
        if not grants.read and not grants.write and (spare := self._take_spare(brood, config)) is not None:
            self._refill(brood)
            return spare
        nursery = await self._nursery(brood, grants)
        worker = await self._started(KernelWorker, self._sandbox(config, tier, grants), config, nursery)
        if not grants.read and not grants.write:
            self._refill(brood)
        return worker

    async def light(self, config: Config, tier: Tier, grants: Grants) -> LightWorker:
        """A plain interpreter, started for this; raises `WorkerStartFailed`."""
        if grants.starts_cold:
            return await self._cold(LightWorker, config, tier, grants)
        return await self._started(LightWorker, self._sandbox(config, tier, grants), config, None)

    def retire(self, worker: KernelWorker | LightWorker) -> None:
        """End a worker and remove what it had, in the background and once its caller has been answered."""
        self._in_background(_later(worker.close))

    async def hatch(self, tier: Tier) -> None:
        """Have a nursery and a spare ready, for whoever wants to wait for them."""
        brood = self._brood(tier, Grants())
        await self._nursery(brood, Grants(), wait=True)
        self._refill(brood)
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """End every process and remove every folder; safe to call twice."""
        self._closed = True
        for starting in self._nurseries.values():
            if not starting.done():
                starting.cancel()
        spares = [spare for spares in self._spares.values() for spare in spares]
        await self.kept.close()
        await self.templates.close()
        await asyncio.gather(*self._tasks, *(spare.close() for spare in spares), return_exceptions=True)
        self._spares.clear()
        nurseries = await asyncio.gather(*self._nurseries.values(), return_exceptions=True)
        for nursery in nurseries:
            if isinstance(nursery, Nursery):
                await nursery.close()
        self._nurseries.clear()
        self._folders.close()

    def abandon(self) -> None:
        """Forget the folders: this is a forked child, and they and the processes are its parent's."""
        self._closed = True
        self._folders.abandon()

    def _brood(self, tier: Tier, grants: Grants) -> Brood:
        # Landlock narrows each child by itself; only mounts are the nursery's.
        mounts = tier == "namespaces"
        return Brood(tier, grants.read if mounts else (), grants.write if mounts else ())

    async def _nursery(self, brood: Brood, grants: Grants, *, wait: bool = False) -> Nursery | None:
        """The nursery for these workers; None while it is not there, and where there can be none."""
        if not self._config.nursery or not _can_fork(brood.tier):
            return None
        starting = self._nurseries.get(brood)
        if starting is None or (starting.done() and not _is_alive(starting)):
            starting = self._nurseries[brood] = asyncio.create_task(self._start_nursery(brood, grants))
        if not wait and not starting.done():
            return None  # a cold start is sooner ready than the rest of a nursery's
        return await starting

    async def _start_nursery(self, brood: Brood, grants: Grants) -> Nursery | None:
        with contextlib.suppress(WorkerError, OSError):
            return await Nursery.start(
                brood.tier, self._folders.root, self._folders.next(), grants, self._config.preload
            )
        return None

    async def _cold(self, kind: type[W], config: Config, tier: Tier, grants: Grants) -> W:
        """One that sees some of the packages only, or runs in another Python."""
        sandbox = self._sandbox(config, tier, grants)
        try:
            await asyncio.to_thread(sandbox.prepare)
        except BaseException:
            sandbox.folder.remove()
            raise
        return await self._started(kind, sandbox, config, None)

    async def _started(self, kind: type[W], sandbox: Sandbox, config: Config, nursery: Nursery | None) -> W:
        worker = kind(sandbox, config, nursery)
        try:
            await worker.start()
        except WorkerError:
            if nursery is None:
                raise
            # Nothing was sent to it yet, so nothing can happen twice: once more, and cold.
            worker = kind(dataclasses.replace(sandbox, folder=self._folders.next()), config, None)
            await worker.start()
        return worker

    def _sandbox(self, config: Config, tier: Tier, grants: Grants) -> Sandbox:
        sandbox = Sandbox(tier, self._folders.next(), grants, config.scratch_mb, config.open_files)
        sandbox.check_paths()
        return sandbox

    def _take_spare(self, brood: Brood, config: Config) -> KernelWorker | None:
        for spare in list(self._spares[brood]):
            if not spare.alive:
                self._spares[brood].remove(spare)
                self.retire(spare)
            elif (spare.sandbox.scratch_mb, spare.sandbox.open_files) == (
                config.scratch_mb,
                config.open_files,
            ):
                self._spares[brood].remove(spare)
                spare.adopt(config)
                return spare
        return None

    def _refill(self, brood: Brood) -> None:
        """Make the next spare in the background; never one with grants, which are for the tool that asked."""
        if self._closed or len(self._spares[brood]) + self._making[brood] >= self._config.spares:
            return
        self._making[brood] += 1
        self._in_background(self._make_spare(brood))

    async def _make_spare(self, brood: Brood) -> None:
        try:
            await asyncio.sleep(_REFILL_AFTER_S)
            nursery = await self._nursery(brood, Grants(), wait=True)
            if nursery is None or self._closed:
                return
            with contextlib.suppress(WorkerError):
                worker = KernelWorker(
                    self._sandbox(self._config, brood.tier, Grants()), self._config, nursery
                )
                await worker.start()
                if self._closed:
                    await worker.close()
                else:
                    self._spares[brood].append(worker)
        finally:
            self._making[brood] -= 1

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _later(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await asyncio.sleep(_RETIRE_AFTER_S)
    await close()


def _can_fork(tier: Tier) -> bool:
    """Whether a nursery's children can be kept apart there: by Landlock, or where nothing is promised anyway."""
    if sys.platform != "linux":
        return False
    return tier == "process" or not probe(tier).layers.get("landlock", "failed").startswith("failed")


def _is_alive(starting: asyncio.Task[Nursery | None]) -> bool:
    nursery = None if starting.cancelled() or starting.exception() else starting.result()
    return nursery is not None and nursery.alive
