"""Data views: inputs and outputs that were kept, `hk.views`.

The keeper works on its own threads, on the sealed memory in which the data crossed. So the caller does not wait for it
and cannot change the kept data. Slow work has a low priority, but transactions do not, because all other writers wait
for them. If the database is locked, the keeper tries again. A host that is killed in the meantime leaves a record
without its view; an execution then says so.
"""

from __future__ import annotations

import builtins
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.config import MIB, Config
from healkit.core.crossing import values
from healkit.core.runtime.contents import MISSING, Contents, Side
from healkit.core.store.database import Database
from healkit.core.store.locations import views_folder
from healkit.core.times import pause_s
from healkit.core.wire.encoding import is_from_library
from healkit.errors import DatabaseLocked, HealkitError, ViewError
from healkit.parts.views.view_records import DataView, FirstRows

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from IPython.lib.pretty import RepresentationPrinter

    from healkit.core.crossing.values import SecretColumns
    from healkit.core.rendering.document import Card
    from healkit.core.runtime.contents import MentionedView
    from healkit.parts.views.data_views import DataViews


#: Limit of the bytes that wait to be kept; an execution that brings more waits until there is room.
_WAITING_BYTES = 2048 * MIB
#: How much nicer than the rest of the process the thread is, as nice(1) counts.
_NICE = 10
#: Pause before data is kept, unless it is asked for: a short execution is over by then, and not slowed down.
_PAUSE_S = 0.5
#: The longest time to end with views still to be written, in seconds; and while the database is locked.
_END_S, _END_LOCKED_S = 60.0, 5.0
#: First and longest pause before a locked database is asked again, in seconds.
_RETRY_FIRST_S, _RETRY_LONGEST_S = 0.1, 5.0
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
        return len(self.encoded) + sum(len(content) for content in self.contents)


#: Gets the views that are loaded while something is on, by name; None outside of `noting`.
_noted: ContextVar[dict[str, str] | None] = ContextVar("healkit_views_read", default=None)


@contextmanager
def noting() -> Iterator[dict[str, str]]:
    """Yield a dict of the views that are loaded for an execution's record in this block: name → file name."""
    read: dict[str, str] = {}
    token = _noted.set(read)
    try:
        yield read
    finally:
        _noted.reset(token)


class ViewKeeper(Contents):
    """Keeps the data of executions as views of one database; `problem` says which data could not be kept."""

    def __init__(self, database: Database, config: Config) -> None:
        self._database = database
        self._budget_bytes, self._shared_url = config.views_mb * MIB, config.views_url
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._views: DataViews | None = None
        self._pid = os.getpid()
        self._closing = False
        self._awaited = 0
        #: How often the oldest job was tried in vain, because the database was locked.
        self._locked = 0
        #: Sentence for the user; empty while all was kept.
        self.problem = ""
        super().__init__()

    @property
    def has_views(self) -> bool:
        """True if any data was ever kept."""
        folder = views_folder(self._database.path, self._database.url)
        return self._views is not None or bool(self._shared_url) or folder.exists()

    @property
    def views(self) -> DataViews:
        """Views of the database; loaded when there are any to keep or to show."""
        if self._views is None:
            from healkit.parts.views.data_views import DataViews

            self._views = DataViews(self._database, self._budget_bytes, self._shared_url)
        return self._views

    def keep(
        self, trace_id: str, side: Side, tool_name: str, encoded: bytes, contents: Sequence[Any]
    ) -> None:
        """Keep the large parts of encoded arguments or of a result; `contents` must never change afterwards.

        Returns at once, unless too much data is waiting in memory.
        """
        if (
            not self._budget_bytes
            or (not contents and len(encoded) < _SMALL_BYTES)
            or os.getpid() != self._pid
        ):
            return
        job = _Job(trace_id, side, tool_name, bytes(encoded), contents, time.monotonic() + _PAUSE_S)
        with self._changed:
            self._changed.wait_for(lambda: self._has_room(job) or self._locked)
            if not self._has_room(job):
                self.problem = (
                    "Some data of executions was not kept: the database is locked, and too much "
                    "data is waiting."
                )
                return
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="healkit-views", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def digests(self, trace_id: str, side: Side = "arguments") -> dict[int, str]:
        """Return the SHA-256 of the views behind an execution's previews, by number."""
        used = self.views.used(trace_id, side) if self.has_views else {}
        return {number: view.sha256 for number, view in used.items()}

    def load(self, trace_id: str, preview: values.Preview, side: Side) -> Any:
        """Return the data behind a preview, after all waiting data is kept."""
        self.wait()  # for data that was evicted, and is being kept again
        if not self.has_views or preview.number not in (used := self.views.used(trace_id, side)):
            return MISSING
        view = used[preview.number]
        value = self.views.load(view)
        if (read := _noted.get()) is not None and view.file is not None:
            read[view.name] = view.file.name
        return value

    def fault(self, view: MentionedView) -> str:
        """Say what is wrong with a view; empty for nothing."""
        return self.views.fault(view) if self.has_views else ""

    def wait(self, trace_id: str | None = None, timeout_s: float | None = None) -> bool:
        """Wait until all data of an execution is kept, or of all executions.

        Returns False when the time is up, or while the database is locked.
        """
        with self._changed:
            self._awaited += 1
            self._changed.notify_all()
            try:
                # What a locked database keeps from being done may take as long as that is.
                self._changed.wait_for(lambda: self._locked or not self._waits(trace_id), timeout_s)
                return not self._waits(trace_id)
            finally:
                self._awaited -= 1

    def close(self) -> None:
        """Keep the waiting data, as far as time allows."""
        if os.getpid() == self._pid and self._thread is not None:
            self.wait(timeout_s=_END_S)
            with self._changed:
                self._closing = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._jobs, _END_LOCKED_S if self._locked else 0.0)
            self._thread.join(timeout=1.0)
            self._thread = None
        super().close()

    def _waits(self, trace_id: str | None) -> bool:
        return any(trace_id in {None, job.trace_id} for job in self._jobs)

    def _has_room(self, job: _Job) -> bool:
        return not self._jobs or self._waiting + job.size <= _WAITING_BYTES

    @property
    def _waiting(self) -> int:
        return sum(job.size for job in self._jobs)

    def _serve(self) -> None:
        with ThreadPoolExecutor(1, "healkit-views", initializer=_be_nice) as slow:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._jobs or self._closing)
                    if not self._jobs:
                        return
                    job = self._jobs[0]
                    self._changed.wait_for(lambda: self._awaited, max(0.0, job.due_s - time.monotonic()))
                is_locked = False
                try:
                    self._keep(job, slow)
                except DatabaseLocked:
                    is_locked = True
                except HealkitError as error:
                    self.problem = f"Some data of executions was not kept: {error.message}"
                except BaseException as error:  # the thread must outlive any error, polars' panics too
                    if not is_from_library(error):
                        raise
                    self.problem = f"Some data of executions was not kept: {type(error).__name__}: {error}"
                with self._changed:
                    self._locked = self._locked + 1 if is_locked else 0
                    if not is_locked:
                        self._jobs.popleft()
                        del job  # and with it the memory that the data crossed in
                    self._changed.notify_all()
                    if is_locked:
                        self._changed.wait(pause_s(self._locked, _RETRY_FIRST_S, _RETRY_LONGEST_S, least=0.5))

    def _keep(self, job: _Job, slow: Executor) -> None:
        from healkit.parts.views.data_views import Use

        def slowly(work: Callable[[], Any]) -> Any:
            return slow.submit(work).result()

        for number, part in enumerate(slowly(lambda: _parts_of(job))):
            use = Use(job.trace_id, job.side, number)
            self.views.keep(part, created_by=job.tool_name, use=use, slowly=slowly)


def _parts_of(job: _Job) -> builtins.list[Any]:
    return values.large_parts(values.decode(job.encoded, job.contents))


def _be_nice() -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


# Views as their user has them.


#: Suffix of an exported file → pandas' method that writes it.
_WRITERS = {".parquet": "to_parquet", ".csv": "to_csv"}
#: Columns of which a card shows the first rows.
_SHOWN_COLUMNS_MAX = 8


class ViewList(list[DataView]):
    """Views as a list that shows itself as a table."""

    def card(self) -> Card:
        """Build the table."""
        from healkit.parts.views import render

        return render.views(self)

    def _repr_html_(self) -> str:
        from healkit.core.rendering.to_html import html_of

        return html_of(self.card())

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        from healkit.core.rendering.to_text import text_of

        printer.text(text_of(self.card()))


class Views:
    """Frames and arrays that were kept: inputs and outputs of tools, and your own.

    Example:
    >>> _ = hk.views.put(pd.DataFrame({"n": [1, 2]}), "numbers")
    >>> hk.views.get("numbers").shape
    (2, 1)
    """

    def __init__(self, keeper: ViewKeeper, secret_columns: SecretColumns) -> None:
        self._keeper, self._secret_columns = keeper, secret_columns

    @property
    def _kept(self) -> DataViews:
        """Views of the database, after the data of earlier executions is kept: the order is always the same."""
        self._keeper.wait()
        return self._keeper.views

    def put(self, value: object, name: str, *, created_by: str = "user") -> DataView:
        """Keep a frame, an array or a table under a name; it is never evicted.

        created_by: The tool that made it, if it was not you.

        The same data under the same name again is the same view. Raises `ViewError` if the name has other data, if the
        value cannot be kept exactly, or if there is no room.

        Example:
        >>> view = hk.views.put(pd.DataFrame({"points": [70, 40]}), "points_of_may")
        >>> view.name, view.kind, view.shape
        ('points_of_may', 'DataFrame', (2, 1))
        """
        if not values.is_tabular(value):
            raise ViewError(
                f"A {type(value).__name__} is not a frame, array or table.",
                hint="Pass a DataFrame, for example.",
            )
        self._kept.keep(value, name=name, created_by=created_by)
        return self._kept.get(name)

    def get(self, name: str) -> DataView:
        """Return the known facts about a view, without its data; raise `ViewNotFound`.

        Example:
        >>> _ = hk.views.put(pd.DataFrame({"n": [1, None, 3]}), "three_rows")
        >>> [(column.name, column.dtype, column.nulls) for column in hk.views.get("three_rows").columns]
        [('n', 'float64', 1)]
        """
        return self._kept.get(name)

    def is_open_to(self, view: DataView, persona: str) -> bool:
        """Return whether an execution for that persona used the view or returned it, or a user named it.

        Example:
        >>> view = hk.views.put(pd.DataFrame({"n": [7]}), "open_rows")
        >>> hk.views.is_open_to(view, "default")
        True
        """
        return self._kept.is_open_to(view, persona)

    def list(self, limit: int = 100, kind: str | None = None) -> ViewList:
        """Return the views, newest first; only those of a kind if one is given, such as `DataFrame`.

        Example:
        >>> _ = hk.views.put(pd.DataFrame({"n": [5]}), "newest_rows")
        >>> hk.views.list(limit=1)[0].name
        'newest_rows'
        """
        return ViewList(self._kept.list(limit, kind))

    def load(self, name: str) -> Any:
        """Return the data, equal to the kept data and of the same type.

        Raises `ViewNotFound`, `ViewGone` if it was evicted or removed, and `ViewChanged` if its file has other content.

        Example:
        >>> _ = hk.views.put(pd.DataFrame({"n": [1, 4]}), "loaded_rows")
        >>> hk.views.load("loaded_rows")
           n
        0  1
        1  4
        """
        return self._keeper.views.load(self.get(name))

    def to_pandas(self, name: str) -> Any:
        """Return the data as a DataFrame; raise as `load`, and `ViewError` for an array of more than two dimensions.

        Example:
        >>> _ = hk.views.put(pd.Series([3, 5], name="n"), "series")
        >>> hk.views.to_pandas("series")
           n
        0  3
        1  5
        """
        import pandas as pd

        value = self.load(name)
        if isinstance(value, pd.DataFrame):
            return value
        if hasattr(value, "to_pandas"):
            return _converted(value)
        if hasattr(value, "to_frame"):
            return value.to_frame()
        try:
            return pd.DataFrame(value)
        except ValueError as error:
            raise ViewError(
                f"View {name!r} is not a table: {error}.", hint="hk.views.load returns it as it is."
            ) from None

    def export(self, name: str, path: str | Path) -> Path:
        """Write the data to a new `.parquet` or `.csv` file; raise as `to_pandas`, and `ViewError` for the file.

        Example:
        >>> _ = hk.views.put(pd.DataFrame({"n": [1, 6]}), "exported_rows")
        >>> print(hk.views.export("exported_rows", "rows.csv").read_text())
        n
        1
        6
        """
        file = Path(path)
        if file.suffix not in _WRITERS:
            raise ViewError(f"{str(file)!r} must end with {' or '.join(_WRITERS)}.")
        frame = self.to_pandas(name)
        more = {"index": False} if file.suffix == ".csv" and frame.index.names == [None] else {}
        try:
            with file.open("xb") as opened:
                getattr(frame, _WRITERS[file.suffix])(opened, **more)
        except OSError as error:
            raise ViewError(f"Cannot write {str(file)!r}: {error.strerror}.") from None
        return file

    def first_rows(self, value: object) -> FirstRows:
        """Return the first rows of a DataFrame, for a card; secret columns are hidden.

        Example:
        >>> hk.views.first_rows(pd.DataFrame({"n": [1, 2], "password": ["a", "b"]}))
        FirstRows(columns=['n', 'password'], rows=[[1, '(hidden)'], [2, '(hidden)']])
        """
        from healkit.core.crossing.frames import first_rows

        return FirstRows(*first_rows(value, self._secret_columns, _SHOWN_COLUMNS_MAX))

    def remove(self, name: str) -> None:
        """Remove a view; executions that refer to it cannot be run again. Raises `ViewNotFound`.

        Example:
        >>> _ = hk.views.put(pd.DataFrame({"n": [9]}), "removed_rows")
        >>> hk.views.remove("removed_rows")
        >>> hk.views.load("removed_rows")
        Traceback (most recent call last):
            ...
        healkit.errors.ViewNotFound: There is no data view 'removed_rows'. ...
        """
        self._kept.remove(name)

    def used(self, trace_id: str) -> dict[str, builtins.list[DataView]]:
        """Return the views that an execution took (`arguments`) and returned (`result`), in order.

        Example:
        >>> _ = hk.vault.add("top", "def top(df): return df.head(1)")
        >>> done = hk.execute("top", arguments={"df": pd.DataFrame({"n": range(1000)})})
        >>> [view.shape for view in hk.views.used(done.trace_id)["arguments"]]
        [(1000, 1)]
        """
        self._keeper.wait(trace_id)
        views = self._keeper.views
        return {side: builtins.list(views.used(trace_id, side).values()) for side in ("arguments", "result")}

    def card(self, name: str) -> Card:
        """Build the card of one view, with its first rows, secret columns hidden.

        Example:
        >>> _ = hk.views.put(pd.DataFrame({"n": [4, 2]}), "shown_rows")
        >>> hk.views.card("shown_rows").title
        'View shown_rows'
        """
        from healkit.parts.views import render

        view = self.get(name)
        preview = (
            None
            if view.file is None
            else values.value_preview(self._keeper.views.load(view), self._secret_columns)
        )
        return render.view(view, preview)


def _converted(table: pa.Table | pa.RecordBatch | pl.DataFrame) -> Any:
    """Return an Arrow or polars table as a DataFrame; in Arrow's own types if pandas has none for a value."""
    import pandas as pd
    import pyarrow as pa

    try:
        return table.to_pandas()
    except Exception:  # noqa: BLE001 - Arrow's own, and those of Python's classes for its values
        arrow = table if isinstance(table, pa.Table | pa.RecordBatch) else table.to_arrow()
        return arrow.to_pandas(types_mapper=pd.ArrowDtype)
