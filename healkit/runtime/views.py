"""Data views as their user has them: `hk.views`."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit import values
from healkit.contracts.data import DataView
from healkit.contracts.decisions import FirstRows
from healkit.errors import ViewError
from healkit.runtime.view_keeper import ViewKeeper

if TYPE_CHECKING:
    from healkit.rendering.document import Card
    from healkit.runtime.recorder import Recorder

#: Suffix of an exported file → pandas' method that writes it.
_WRITERS = {".parquet": "to_parquet", ".csv": "to_csv"}
#: Columns of which a card shows the first rows.
_SHOWN_COLUMNS_MAX = 8


class ViewList(list[DataView]):
    """Views as a list that shows itself as a table."""

    def __init__(self, views: Iterable[DataView] = ()) -> None:
        super().__init__(views)

    def card(self) -> Card:
        """Build the table."""
        from healkit.rendering import data_views

        return data_views.listing(self)

    def _repr_html_(self) -> str:
        from healkit.rendering import html_of

        return html_of(self.card())

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        from healkit.rendering import text_of

        printer.text(text_of(self.card()))


class Views:
    """Frames and arrays that were kept: those that tools were given or returned, and your own."""

    def __init__(self, keeper: ViewKeeper, recorder: Recorder) -> None:
        self._keeper, self._recorder = keeper, recorder

    def put(self, value: Any, name: str, *, created_by: str = "user") -> DataView:
        """Keep a frame, an array or a table under a name; it is never evicted.

        created_by: the tool that made it, where it was not you.

        The same data under the same name again is the same view. Raises `ViewError` where the name stands for other
        data, where the value cannot be kept exactly, or where there is no room.
        """
        if not values.is_tabular(value):
            raise ViewError(
                f"A {type(value).__name__} is no frame, array or table.",
                hint="Give a DataFrame, for example.",
            )
        self._keeper.wait()  # what executions brought before is kept before: the order is always the same
        self._keeper.views.keep(value, name=name, created_by=created_by)
        return self._keeper.views.get(name)

    def get(self, name: str) -> DataView:
        """Return what is known of a view; raise `ViewNotFound`."""
        self._keeper.wait()
        return self._keeper.views.get(name)

    def list(self, limit: int = 100) -> ViewList:
        """Return the views, newest first."""
        self._keeper.wait()
        return ViewList(self._keeper.views.list(limit))

    def load(self, name: str) -> Any:
        """Return the data, equal to what was kept and of the same type.

        Raises `ViewNotFound`, `ViewGone` where it was evicted or removed, and `ViewChanged` where its file does not
        hold what was kept.
        """
        return self._keeper.views.load(self.get(name))

    def to_pandas(self, name: str) -> Any:
        """Return the data as a DataFrame; raise as `load`, and `ViewError` for an array of more than two dimensions."""
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
                f"View {name!r} is no table: {error}.", hint="hk.views.load returns it as it is."
            ) from None

    def export(self, name: str, path: str | Path) -> Path:
        """Write the data to a new `.parquet` or `.csv` file; raise as `to_pandas`, and `ViewError` for the file."""
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

    def first_rows(self, value: Any) -> FirstRows:
        """Return the first rows of a DataFrame, for a card; secret columns are hidden."""
        from healkit.values.previews import first_rows

        return FirstRows(*first_rows(value, self._recorder.secret_columns, _SHOWN_COLUMNS_MAX))

    def remove(self, name: str) -> None:
        """Remove a view; executions that refer to it cannot be run again. Raises `ViewNotFound`."""
        self._keeper.wait()
        self._keeper.views.remove(name)

    def used(self, trace_id: str) -> dict[str, builtins.list[DataView]]:
        """Return the views that an execution was given (`arguments`) and returned (`result`), in order."""
        self._keeper.wait(trace_id)
        views = self._keeper.views
        return {side: builtins.list(views.used(trace_id, side).values()) for side in ("arguments", "result")}

    def card(self, name: str) -> Card:
        """Build the card of one view, with its first rows, secret columns hidden."""
        from healkit.rendering import data_views

        view = self.get(name)
        shown = (
            None
            if view.file is None
            else values.preview(self._keeper.views.load(view), self._recorder.secret_columns)
        )
        return data_views.card(view, shown)


def _converted(table: Any) -> Any:
    """Return a table of Arrow's or polars' as a DataFrame; in Arrow's own types where pandas has none for a value."""
    import pandas as pd
    import pyarrow as pa

    try:
        return table.to_pandas()
    except Exception:  # noqa: BLE001 - Arrow's own, and those of Python's classes for its values
        arrow = table if isinstance(table, pa.Table | pa.RecordBatch) else table.to_arrow()
        return arrow.to_pandas(types_mapper=pd.ArrowDtype)
