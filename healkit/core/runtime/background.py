"""Event loop and pools of workers, one set a process.

Several `Healkit`s share them. They are started when first needed; `shutdown` ends them, at interpreter exit and on
`%unload_ext`. A forked child starts with none: the parent's workers stay the parent's.

A notebook has a running loop already, so the async core has its own, in a thread that lives as long as the host
process. That thread also spawns the workers, whose sandbox dies with the thread that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import queue
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from healkit import hooks
from healkit.config import Config
from healkit.core.rendering.outputs import safe_output

if TYPE_CHECKING:
    from healkit.core.workers.pool import Pool


T = TypeVar("T")
#: Longest wait before signals are looked at. A signal that comes just before the main thread begins to wait for a lock
#: does not end that wait: CPython only notices it afterwards, so a Ctrl-C would be lost until the work ends.
_SIGNALS_S = 0.2
#: Longest wait for the end of work that was stopped.
_SETTLE_S = 5.0


class Stop:
    """Signal from any thread that ends the executions of another one, as a panel's Stop button does.

    It reaches the executions that the other thread starts inside `with stop.heard():`. Their workers are ended, and the
    thread, which waits in `BackgroundLoop.run`, goes on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[Callable[[], object]] = []
        self.asked = False

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Make the runs in this block end when `ask` is called."""
        token = _stop.set(self)
        try:
            yield
        finally:
            _stop.reset(token)

    def ask(self) -> None:
        """End what runs now, and whatever begins later in the block; safe to call twice, from any thread."""
        with self._lock:
            self.asked, ends = True, self._ends
        for end in ends:
            end()

    def tell(self, end: Callable[[], object]) -> None:
        """Register the function that ends a run; called by the run as it begins."""
        with self._lock:
            self._ends = [*self._ends, end]
            is_requested = self.asked
        if is_requested:
            end()


_stop: contextvars.ContextVar[Stop | None] = contextvars.ContextVar("healkit_stop", default=None)


def heard_stop() -> Stop | None:
    """Return the Stop whose block this code is in, if it is in one."""
    return _stop.get()


class BackgroundLoop:
    """An event loop in a thread of its own; started with its first use, and again in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run it in the loop; any thread may wait for the future, except the loop's own."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running())

    def run(
        self,
        start: Callable[[Callable[[dict[str, Any]], None], asyncio.Event], Coroutine[Any, Any, T]],
        on_output: Callable[[dict[str, Any]], None] | None,
    ) -> T:
        """Run what `start(emit, stop)` makes, and wait for it in this thread.

        `on_output` gets what is emitted, here and as it comes, so that displays find the caller's cell. Ctrl-C sets
        `stop`, waits until the work has ended and been recorded, and then goes on to the caller; a `Stop` that this
        thread hears sets it too, and the work's own outcome is returned.
        """
        outputs: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        loop = self._running()
        stop = asyncio.Event()
        future = asyncio.run_coroutine_threadsafe(start(outputs.put, stop), loop)
        future.add_done_callback(lambda _: outputs.put(None))
        if (heard := _stop.get()) is not None:
            heard.tell(lambda: None if future.done() else loop.call_soon_threadsafe(stop.set))
        try:
            while (output := _next(outputs)) is not None:
                if on_output is not None:
                    on_output(output)
        except BaseException:
            loop.call_soon_threadsafe(stop.set)
            _settle(future)
            raise
        return future.result()

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it in the loop, and wait for its result in this thread; Ctrl-C cancels it, and waits for its end."""
        over = threading.Event()

        async def work() -> T:
            try:
                return await coroutine
            finally:
                over.set()

        future = self.submit(work())
        try:
            while not over.wait(_SIGNALS_S):
                pass
        except BaseException:
            future.cancel()
            over.wait(_SETTLE_S)
            raise
        return future.result()

    def close(self) -> None:
        """Stop the loop and its thread; it starts again when it is used again."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None or self._pid != os.getpid():
            return
        with contextlib.suppress(TimeoutError, RuntimeError):
            asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result(timeout=5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
        if not thread.is_alive():
            loop.close()

    def abandon(self) -> object:
        """Begin anew in a forked child; returns the parent's loop, which must be kept and never be touched."""
        inherited, self._loop, self._thread, self._lock = self._loop, None, None, threading.Lock()
        return inherited

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="healkit", daemon=True
                )
                self._thread.start()
            return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()


def _next(outputs: queue.SimpleQueue[dict[str, Any] | None]) -> dict[str, Any] | None:
    while True:
        with contextlib.suppress(queue.Empty):
            return outputs.get(timeout=_SIGNALS_S)


def _settle(future: Future[Any]) -> None:
    """Wait for the end of stopped work; its outcome is on record, and a second Ctrl-C need not wait."""
    try:
        future.exception(timeout=_SETTLE_S)
    except (TimeoutError, KeyboardInterrupt):
        future.cancel()


loop = BackgroundLoop()
_pools: dict[tuple[object, ...], Pool] = {}


def pool_for(config: Config) -> Pool:
    """Return the pool for these settings; to be called on healkit's loop."""
    # Late: Jupyter's client takes longer to load than a row to write.
    from healkit.core.workers.pool import Pool

    settings = (config.fork_server, config.spares, config.preload)
    pool = _pools.get(settings)
    if pool is None:
        pool = _pools[settings] = Pool(config)
    return pool


def pools() -> list[Pool]:
    """Return the pools of this process; to be called on healkit's loop."""
    return list(_pools.values())


def shutdown() -> None:
    """End all workers, fork servers, folders, MCP servers and the loop; each starts again when it is used."""
    hooks.every("resting")
    if _pools:
        loop.submit(_close_pools()).result(timeout=20)
    loop.close()


async def _close_pools() -> None:
    pools = list(_pools.values())
    _pools.clear()
    for pool in pools:
        await pool.close()


#: Objects of the parent, in a forked child. Kept, not collected: a coroutine that is collected runs its `finally`,
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


# Outputs of a worker, shown in the user's own notebook.


def no_output(_output: dict[str, Any]) -> None:
    """Drop an output as it comes: the execution has them all at its end."""


def notebook_display() -> Callable[[dict[str, Any]], None] | None:
    """Return a function that displays one output in the running cell, or None outside of a notebook."""
    return show_output if hasattr(_shell(), "kernel") else None


def in_ipython() -> bool:
    """Return True where magics can be typed: in a notebook, or in IPython in a terminal."""
    return _shell() is not None


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def show_output(output: dict[str, Any]) -> None:
    """Display one nbformat output, cleaned of what could act in the user's page."""
    clean = safe_output(output)
    if clean is None or clean["output_type"] == "error":  # a failure is raised, not displayed
        return
    if clean["output_type"] == "stream":
        stream = sys.stderr if clean.get("name") == "stderr" else sys.stdout
        stream.write(clean["text"])
        return
    from IPython.display import display

    display(clean["data"], metadata=clean.get("metadata") or {}, raw=True)
