"""Keeper of views: stores what executions took and gave.

It works on a thread of its own, with a low priority, on the sealed memory that the data crossed in: the caller neither
waits for it, nor can change what is kept. A host that is killed meanwhile leaves a record without its view, and an
execution that is asked for says so.
"""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import msgspec

from healkit import values
from healkit.config import MIB, Config
from healkit.contracts.encoding import is_from_library
from healkit.errors import HealkitError, ViewGone
from healkit.store.database import Database
from healkit.store.locations import views_folder

if TYPE_CHECKING:
    from healkit.store.data_views import DataViews, Side

#: Limit of the bytes that wait to be kept; an execution that brings more waits until there is room.
_WAITING_BYTES = 2048 * MIB
#: How much nicer than the rest of the process the thread is, as nice(1) counts.
_NICE = 10
#: Pause before data is kept, unless it is asked for: a short execution is over by then, and not slowed down.
_PAUSE_S = 0.5
#: The longest time to end with views still to be written, in seconds.
_END_S = 60.0
#: Encoded values shorter than this hold nothing that a record does not keep whole.
_SMALL_BYTES = 400


class _Job(msgspec.Struct, frozen=True, eq=False):
    trace_id: str
    side: Side
    tool_name: str
    encoded: bytes
    contents: Sequence[Any]
    due_s: float

    @property
    def size(self) -> int:
        return len(self.encoded) + sum(len(one) for one in self.contents)


#: Those that are open, to be asked for the data of an execution.
_keepers: weakref.WeakSet[ViewKeeper] = weakref.WeakSet()


#: Gets the views that are loaded while something is on, by name; None outside of `noting`.
_noted: ContextVar[dict[str, str] | None] = ContextVar("healkit_views_read", default=None)


@contextmanager
def noting() -> Iterator[dict[str, str]]:
    """Yield what gets each view that is loaded for an execution's record in this block: name → its file's name."""
    read: dict[str, str] = {}
    token = _noted.set(read)
    try:
        yield read
    finally:
        _noted.reset(token)


def data_behind(
    trace_id: str, preview: values.Preview, *, side: Side = "arguments", items_max: float = math.inf
) -> Any:
    """Return the data that a preview in an execution's record stands for.

    items_max: more items than this are not loaded, and are refused too. Raises `ViewGone`, and `ViewChanged` where the
    file does not hold what was kept.
    """
    if math.prod(preview.shown["shape"]) > items_max:
        raise ViewGone(f"{preview!r}: it has more than {items_max:,} items.")
    problems = [keeper.problem for keeper in list(_keepers) if keeper.problem]
    for keeper in list(_keepers):
        keeper.wait()  # for data that was evicted, and is being kept again
        if keeper.has_views and preview.number in (used := keeper.views.used(trace_id, side)):
            view = used[preview.number]
            value = keeper.views.load(view)
            if (read := _noted.get()) is not None and view.file is not None:
                read[view.name] = view.file.name
            return value
    raise ViewGone(f"{preview!r}: its data was not kept.", hint=" ".join(problems))


def same_data(one: str, other: str) -> bool:
    """Return whether the previews in two executions' arguments stand for the same data, as far as it was kept."""

    def digests(trace_id: str) -> list[dict[int, str]]:
        used = [keeper.views.used(trace_id, "arguments") for keeper in _keepers if keeper.has_views]
        return [{number: view.sha256 for number, view in found.items()} for found in used]

    return digests(one) == digests(other)


class ViewKeeper:
    """Keeps the data of executions as views of one database; `problem` says what could not be kept."""

    def __init__(self, database: Database, config: Config) -> None:
        self._database = database
        self._budget_bytes = config.views_mb * MIB
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._views: DataViews | None = None
        self._pid = os.getpid()
        self._closing = False
        self._awaited = 0
        #: Sentence for the user; empty while all was kept.
        self.problem = ""
        _keepers.add(self)

    @property
    def has_views(self) -> bool:
        """True where any data was ever kept."""
        return self._views is not None or views_folder(self._database.path, self._database.url).exists()

    @property
    def views(self) -> DataViews:
        """Views of the database; loaded when there are any to keep, or to be looked at."""
        if self._views is None:
            from healkit.store.data_views import DataViews

            self._views = DataViews(self._database, self._budget_bytes)
        return self._views

    def keep(
        self, trace_id: str, side: Side, tool_name: str, encoded: bytes, contents: Sequence[Any]
    ) -> None:
        """Keep what is large in encoded arguments or in a result; `contents` must never change any more.

        Returns at once, unless more waits than memory should hold.
        """
        if (
            not self._budget_bytes
            or (not contents and len(encoded) < _SMALL_BYTES)
            or os.getpid() != self._pid
        ):
            return
        job = _Job(trace_id, side, tool_name, bytes(encoded), contents, time.monotonic() + _PAUSE_S)
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs or self._waiting + job.size <= _WAITING_BYTES)
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="healkit-views", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait(self, trace_id: str | None = None, timeout_s: float | None = None) -> bool:
        """Wait until all that an execution brought is kept, or all there is; return False when time is up."""

        def done() -> bool:
            return not any(trace_id in {None, job.trace_id} for job in self._jobs)

        with self._changed:
            self._awaited += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(done, timeout_s)
            finally:
                self._awaited -= 1

    def close(self) -> None:
        """Finish what waits, as far as there is time for it."""
        if os.getpid() == self._pid and self._thread is not None:
            self.wait(timeout_s=_END_S)
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            self._thread.join(timeout=1.0)
            self._thread = None
        _keepers.discard(self)

    @property
    def _waiting(self) -> int:
        return sum(job.size for job in self._jobs)

    def _serve(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closing)
                if not self._jobs:
                    return
                job = self._jobs[0]
                self._changed.wait_for(lambda: self._awaited, max(0.0, job.due_s - time.monotonic()))
            try:
                self._keep(job)
            except HealkitError as error:
                self.problem = f"Some data of executions was not kept: {error.message}"
            except BaseException as error:  # the thread must outlive any error, polars' panics too
                if not is_from_library(error):
                    raise
                self.problem = f"Some data of executions was not kept: {type(error).__name__}: {error}"
            with self._changed:
                self._jobs.popleft()
                del job  # and with it the memory that the data crossed in
                self._changed.notify_all()

    def _keep(self, job: _Job) -> None:
        from healkit.store.data_views import Use

        value = values.decode(job.encoded, job.contents)
        for number, part in enumerate(values.large_parts(value)):
            self.views.keep(part, created_by=job.tool_name, use=Use(job.trace_id, job.side, number))
