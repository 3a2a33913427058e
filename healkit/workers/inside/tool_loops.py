"""Event loops of a tool, as in a script and nested.

Generated code asks for a loop in every way that ever worked: `asyncio.run`, `get_event_loop().run_until_complete`, and
either of them inside a coroutine. All give the same answer here. A loop inside a running one is a loop of its own on
the same thread; the outer one stands still meanwhile.
"""

from __future__ import annotations

import functools
import sys
from typing import Any


def policy() -> Any:
    """Return a policy whose `get_event_loop` makes a loop where there is none; asyncio must be loaded."""
    import asyncio

    class Loops(asyncio.DefaultEventLoopPolicy):
        """Loops of one tool."""

        def get_event_loop(self) -> asyncio.AbstractEventLoop:
            """Return this thread's loop; called by asyncio."""
            try:
                loop: asyncio.AbstractEventLoop | None = super().get_event_loop()
            except RuntimeError:
                loop = None
            if loop is None or loop.is_closed():
                loop = self.new_event_loop()
                self.set_event_loop(loop)
            return loop

    return Loops()


def let_nest() -> None:
    """Let `asyncio.run` and `run_until_complete` work inside a running loop, once; nothing where asyncio is not loaded.

    Only calls that would raise are changed.
    """
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is None or hasattr(asyncio.run, "__wrapped__"):
        return
    if type(asyncio.get_event_loop_policy()).__module__ != __name__:  # no kernel has hidden its loop here
        asyncio.set_event_loop_policy(policy())
    run, until_complete = asyncio.run, asyncio.BaseEventLoop.run_until_complete

    @functools.wraps(run)
    def nested_run(*args: Any, **kwargs: Any) -> Any:
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            return run(*args, **kwargs)
        finally:
            asyncio._set_running_loop(outer)

    @functools.wraps(until_complete)
    def nested_until_complete(self: Any, future: Any) -> Any:
        outer = asyncio._get_running_loop()
        if outer is None:
            return until_complete(self, future)
        asyncio._set_running_loop(None)
        inner = asyncio.new_event_loop() if self.is_running() else self
        try:
            return until_complete(inner, future)
        finally:
            if inner is not self:
                inner.close()
            asyncio._set_running_loop(outer)

    asyncio.run = nested_run
    asyncio.runners.run = nested_run
    asyncio.BaseEventLoop.run_until_complete = nested_until_complete
