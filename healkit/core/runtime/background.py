"""Event loop and pools of workers, one set per process.

All `Healkit`s of a process share them. They start on first use. `shutdown` ends them, at the interpreter's exit and on
`%unload_ext`. A forked child starts without any: the parent's workers remain the parent's.

A notebook already has a running loop. So healkit has its own loop, in a thread that lives as long as the host process.
That thread also spawns the workers, because a worker's sandbox dies with the thread that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
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
#: Longest wait before signals are checked, in seconds. If a signal arrives just before the main thread waits
#: for a lock, CPython does not interrupt the wait. Without this limit, a Ctrl-C would have no effect until
#: the work ends.
_SIGNALS_S = 0.2
#: Longest wait for stopped work to end, in seconds.
_SETTLE_S = 5.0


def show_parameters(form: Any, of: Callable[..., Any]) -> None:
    """Let `help()` and completion show the parameters of a function for its async form, which passes them on."""
    result = inspect.signature(form).return_annotation
    form.__signature__ = inspect.signature(of).replace(return_annotation=result)


class Stop:
    """Request from one thread to end the executions of another, such as a panel's Stop button.

    It affects executions that the other thread starts in `with stop.heard():`. It ends their workers. The other thread,
    which waits in `BackgroundLoop.run`, continues.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[Callable[[], object]] = []
        self.asked = False

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Let `ask` end the executions in this block."""
        token = _stop.set(self)
        try:
            yield
        finally:
            _stop.reset(token)

    def ask(self) -> None:
        """End the running executions of the block, and those that start later; safe to call twice, from any thread."""
        with self._lock:
            self.asked, ends = True, self._ends
        for end in ends:
            end()

    def tell(self, end: Callable[[], object]) -> None:
        """Register the function that ends an execution; called when the execution begins."""
        with self._lock:
            self._ends = [*self._ends, end]
            is_requested = self.asked
        if is_requested:
            end()


_stop: contextvars.ContextVar[Stop | None] = contextvars.ContextVar("healkit_stop", default=None)


def heard_stop() -> Stop | None:
    """Return the Stop whose block contains the running code, if any."""
    return _stop.get()


class BackgroundLoop:
    """An event loop in its own thread; it starts on first use, and again in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the loop; any thread except the loop's own may wait for the future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running())

    def run(
        self,
        start: Callable[[Callable[[dict[str, Any]], None], asyncio.Event], Coroutine[Any, Any, T]],
        on_output: Callable[[dict[str, Any]], None] | None,
    ) -> T:
        """Run the coroutine that `start(emit, stop)` returns, and wait for it in this thread.

        Each emitted output is passed to `on_output` at once, in this thread, so that displays find the caller's cell.
        Ctrl-C sets `stop`, waits until the work has ended and is recorded, and then reaches the caller. A `Stop` in
        this thread sets `stop` too; then the outcome of the work is returned.
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
        """Run a coroutine in the loop and wait for its result in this thread; Ctrl-C cancels it, then waits."""
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
        """Stop the loop and its thread; it starts again on the next use."""
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
        """Start afresh in a forked child; return the parent's loop, which must be kept and never used."""
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
    """Wait for stopped work to end; its outcome is recorded, and a second Ctrl-C skips the wait."""
    try:
        future.exception(timeout=_SETTLE_S)
    except (TimeoutError, KeyboardInterrupt):
        future.cancel()


loop = BackgroundLoop()
_pools: dict[tuple[object, ...], Pool] = {}


def pool_for(config: Config) -> Pool:
    """Return the pool for these settings; call it on healkit's loop."""
    # Late, because Jupyter's client takes longer to import than a row to write.
    from healkit.core.workers.pool import Pool

    settings = (config.fork_server, config.spares, config.preload)
    pool = _pools.get(settings)
    if pool is None:
        pool = _pools[settings] = Pool(config)
    return pool


def pools() -> list[Pool]:
    """Return the pools of this process; call it on healkit's loop."""
    return list(_pools.values())


def shutdown() -> None:
    """End all workers, fork servers, folders, MCP servers and the loop; each starts again on the next use."""
    hooks.every("resting")
    if _pools:
        loop.submit(_close_pools()).result(timeout=20)
    loop.close()


async def _close_pools() -> None:
    pools = list(_pools.values())
    _pools.clear()
    for pool in pools:
        await pool.close()


#: The parent's objects, in a forked child. They must not be garbage-collected: a collected coroutine runs its
#: `finally`, which would end the parent's workers through inherited descriptors.
_inherited: list[object] = []


def _abandon() -> None:
    for pool in _pools.values():
        pool.abandon()
    _inherited.extend(_pools.values())
    _pools.clear()
    _inherited.append(loop.abandon())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon)


# Outputs of a worker, in the user's notebook.


def no_output(_output: dict[str, Any]) -> None:
    """Ignore a live output; the finished execution has all outputs."""


def notebook_display() -> Callable[[dict[str, Any]], None] | None:
    """Return a function that displays one output in the running cell; None outside of a notebook."""
    return show_output if hasattr(_shell(), "kernel") else None


def in_ipython() -> bool:
    """Return True if the user can type magics: in a notebook, or in IPython in a terminal."""
    return _shell() is not None


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def show_output(output: dict[str, Any]) -> None:
    """Display one nbformat output, without anything that could act in the user's page."""
    clean = safe_output(output)
    if clean is None or clean["output_type"] == "error":  # a failure is raised, not displayed
        return
    if clean["output_type"] == "stream":
        stream = sys.stderr if clean.get("name") == "stderr" else sys.stdout
        stream.write(clean["text"])
        return
    from IPython.display import display

    display(clean["data"], metadata=clean.get("metadata") or {}, raw=True)
