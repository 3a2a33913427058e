"""Frames, series and arrays in the JSON of a set.

`{"$frame": {"city": ["Bern"]}}` is a frame of these columns, `{"$series": […]}` a series, `{"$array": […]}` an array.
Beside it stand, where pandas would choose otherwise, `$dtypes` (by column), `$dtype`, `$name`, `$index`, `$index_name`,
`$index_dtype` and `$columns_name`. null is a missing value.
"""

from __future__ import annotations

from typing import Any


def made(written: Any) -> Any:
    """Return the value that is written so."""
    if isinstance(written, list):
        return [made(item) for item in written]
    if not isinstance(written, dict):
        return written
    for key, make in _MAKERS.items():
        if key in written:
            return make(written)
    return {name: made(item) for name, item in written.items()}


def _frame(written: dict[str, Any]) -> Any:
    import pandas as pd

    frame = pd.DataFrame(written["$frame"], index=_index(written))
    frame = frame.astype(written.get("$dtypes", {}))
    if "$columns_name" in written:
        frame.columns.name = written["$columns_name"]
    return frame


def _series(written: dict[str, Any]) -> Any:
    import pandas as pd

    series = pd.Series(written["$series"], index=_index(written), name=written.get("$name"))
    return series.astype(written["$dtype"]) if "$dtype" in written else series


def _array(written: dict[str, Any]) -> Any:
    import numpy as np

    return np.array(written["$array"], dtype=written.get("$dtype"))


def _index(written: dict[str, Any]) -> Any:
    import pandas as pd

    if "$index" not in written:
        return None
    return pd.Index(written["$index"], name=written.get("$index_name"), dtype=written.get("$index_dtype"))


_MAKERS = {"$frame": _frame, "$series": _series, "$array": _array}
