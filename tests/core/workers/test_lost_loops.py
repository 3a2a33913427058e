"""Loops that end before the processes that they have started."""

from __future__ import annotations

from programs import python

LOST = """
import asyncio, gc
from healkit import Config
from healkit.core.contracts.execution import Grants
from healkit.core.workers.pool import Pool
from healkit.core.workers.process import _running

async def start():
    pool = Pool(Config(spares=0))
    await pool.kernel(Config(), "namespaces", Grants())
    pool._folders.close()

asyncio.run(start())
gc.collect()
print("waited for:", len(_running) > 0)
"""


def test_a_process_whose_loop_has_ended_is_waited_for_at_the_end() -> None:
    done = python(LOST, warnings="error::ResourceWarning")
    assert done.stdout == "waited for: True\n", done.stderr
    assert "still running" not in done.stderr
