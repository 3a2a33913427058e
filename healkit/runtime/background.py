"""What a process has one of: the event loop, and the pools of workers.

Several `Healkit`s share them. What needs them first starts them; `shutdown` ends them, at interpreter exit and
on `%unload_ext`. A forked child starts with nothing: the parent's workers are the parent's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from healkit.config import Config
from healkit.errors import PostMortemGone
from healkit.runtime.loop import BackgroundLoop
from healkit.runtime.mcp import servers as mcp_servers

if TYPE_CHECKING:
    from healkit.workers.pool import Pool
    from healkit.workers.retained import RetainedWorker

_NOT_KNOWN = "the run was another process's, or healkit has been shut down since"

loop = BackgroundLoop()
_pools: dict[tuple[object, ...], Pool] = {}


def pool_for(config: Config) -> Pool:
    """The pool for these settings; to be called on healkit's loop."""
    from healkit.workers.pool import (
        Pool,  # here, not above: Jupyter's client takes longer to load than a row to write
    )

    settings = (config.nursery, config.spares, config.preload)
    pool = _pools.get(settings)
    if pool is None:
        pool = _pools[settings] = Pool(config)
    return pool


async def retained_worker(trace_id: str, *, hold: bool = False) -> RetainedWorker:
    """The worker of a failed run; raises `PostMortemGone` with the reason. `hold` lets its time stand still."""
    reason = ""
    for pool in _pools.values():
        if (found := pool.retained.find(trace_id)) is not None:
            if hold:
                pool.retained.hold(trace_id)
            return found
        reason = reason or pool.retained.reason(trace_id)
    raise PostMortemGone(
        f"The worker of that run is not there to be asked: {reason or _NOT_KNOWN}.",
        hint="Run the tool again; HEALKIT_POST_MORTEM_KEPT and HEALKIT_POST_MORTEM_S say how many are kept, how long.",
    )


async def let_go(trace_id: str) -> None:
    """End the worker of a failed run before its time; no error when there is none."""
    for pool in _pools.values():
        pool.retained.let_go(trace_id, "it was let go")


def shutdown() -> None:
    """End all workers, fork servers, folders, MCP servers and the loop; each starts again when it is used."""
    mcp_servers.rest()
    if _pools:
        loop.submit(_close_pools()).result(timeout=20)
    loop.close()


async def _close_pools() -> None:
    pools = list(_pools.values())
    _pools.clear()
    for pool in pools:
        await pool.close()


#: In a forked child: what was the parent's. Kept, and not collected: a coroutine that is collected runs its `finally`,
#: and would end the parent's workers through descriptors that the child has inherited.
_inherited: list[object] = []


def _abandon() -> None:
    for pool in _pools.values():
        pool.abandon()
    _inherited.extend(_pools.values())
    _pools.clear()
    _inherited.append(loop.abandon())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon)
