"""What a process has one of: the event loop, and the pools of workers.

Several `Healkit`s share them. What needs them first starts them; `shutdown` ends them, at interpreter exit and
on `%unload_ext`. A forked child starts with nothing: the parent's workers are the parent's.
"""

from __future__ import annotations

import os

from healkit.config import Config
from healkit.runtime import mcp_servers
from healkit.runtime.loop import BackgroundLoop
from healkit.workers.pool import Pool

loop = BackgroundLoop()
_pools: dict[tuple[object, ...], Pool] = {}


def pool_for(config: Config) -> Pool:
    """The pool for these settings; to be called on healkit's loop."""
    settings = (config.nursery, config.spares, config.preload)
    pool = _pools.get(settings)
    if pool is None:
        pool = _pools[settings] = Pool(config)
    return pool


def shutdown() -> None:
    """End all workers, nurseries and their folders, MCP servers, and the loop; all start again when they are used."""
    mcp_servers.rest()
    if _pools:
        loop.submit(_close_pools()).result(timeout=20)
    loop.close()


async def _close_pools() -> None:
    pools = list(_pools.values())
    _pools.clear()
    for pool in pools:
        await pool.close()


def _abandon() -> None:
    for pool in _pools.values():
        pool.abandon()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon)
