"""Frames and arrays of an exported notebook."""

from __future__ import annotations

import math
import pprint
from collections.abc import Callable
from pathlib import Path
from typing import Any

from healkit import values
from healkit.errors import UsageInvalid, ViewGone
from healkit.runtime import view_keeper
from healkit.sanitizer.payloads import secret_columns
from healkit.values.previews import HIDDEN

#: Up to this many items a frame is written as code.
_CODE_ITEMS = 200
#: How many values of a column are looked at for secrets.
_LOOKED_AT = 1000


class _Source:
    """Expression that makes a value again; stands for it in a literal."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __repr__(self) -> str:
        return self._code


class ExportedData:
    """Arguments of one execution as Python code; what is too large for that goes into files in `folder`.

    `imports` are the lines that the code needs; `missing` names the arguments whose data was not kept.
    """

    def __init__(self, folder: Path, clean: Any) -> None:
        self._folder, self._clean = folder, clean
        self._written = 0
        self.imports: set[str] = set()
        self.missing: list[str] = []

    def code(self, trace_id: str, arguments: dict[str, Any]) -> str:
        """Return the code of the arguments, cleaned.

        Raises `UsageInvalid` where a file cannot be written, and `ViewChanged`.
        """
        sources = {name: self._source(trace_id, value, name) for name, value in arguments.items()}
        return pprint.pformat(sources, width=100, sort_dicts=False)

    def _source(self, trace_id: str, value: Any, name: str) -> Any:
        if isinstance(value, values.Preview):
            try:
                value = view_keeper.data_behind(trace_id, value)
            except ViewGone:
                self.missing.append(name)
                return _Source(f"None  # {value!r}")
        if type(value) is dict:
            return {key: self._source(trace_id, item, f"{name}_{key}") for key, item in value.items()}
        if type(value) is list:
            return [self._source(trace_id, item, f"{name}_{i}") for i, item in enumerate(value)]
        return self._table(value, name) if values.is_tabular(value) else self._clean(value)

    def _table(self, value: Any, name: str) -> Any:
        import pandas as pd

        if isinstance(value, pd.DataFrame):
            frame = self._without_secrets(value)
            if math.prod(frame.shape) <= _CODE_ITEMS and (code := _frame_code(frame)) is not None:
                self.imports.add("import pandas as pd")
                return _Source(code)
            return self._file(name, "parquet", "pandas as pd", "pd.read_parquet({})", frame.to_parquet)
        if isinstance(value, pd.Series):
            frame = self._without_secrets(
                value.to_frame(value.name if isinstance(value.name, str) else "values")
            )
            return self._file(
                name, "parquet", "pandas as pd", "pd.read_parquet({}).iloc[:, 0]", frame.to_parquet
            )
        if type(value).__name__ == "ndarray":

            def save(path: Path) -> None:
                import numpy as np

                np.save(path, value, allow_pickle=False)

            return self._file(name, "npy", "numpy as np", "np.load({})", save)
        frame = self._without_secrets(
            value.to_pandas() if hasattr(value, "to_pandas") else pd.DataFrame(value)
        )
        return self._file(name, "parquet", "pandas as pd", "pd.read_parquet({})", frame.to_parquet)

    def _without_secrets(self, frame: Any) -> Any:
        first = frame.head(_LOOKED_AT)
        columns = {str(name): first.iloc[:, i].tolist() for i, name in enumerate(frame.columns)}
        hidden = secret_columns(self._clean.cleaner, columns)
        self._clean.hidden += len(hidden)
        masked = frame.copy(deep=False)
        for name in frame.columns:
            if str(name) in hidden:
                masked[name] = HIDDEN
        return masked

    def _file(self, name: str, suffix: str, module: str, code: str, save: Callable[[Path], Any]) -> Any:
        self._written += 1
        safe = "".join(letter if letter.isalnum() else "_" for letter in name)[:40]
        file = self._folder / f"{self._written}_{safe}.{suffix}"
        try:
            self._folder.mkdir(exist_ok=True)
            save(file)
        except OSError as error:
            raise UsageInvalid(
                f"Cannot write {str(file)!r}: {error.strerror}.", hint="Name a place that can be written."
            ) from None
        except Exception:  # noqa: BLE001 - pandas and numpy raise many kinds for what their files cannot hold
            file.unlink(missing_ok=True)
            self.missing.append(name)
            return _Source("None  # no file can hold it")
        self.imports.add(f"import {module}")
        return _Source(code.format(repr(f"{self._folder.name}/{file.name}")))


def _frame_code(frame: Any) -> str | None:
    """Return the code of a small frame; None where it would make another one."""
    import pandas as pd

    plain = {name: frame[name].tolist() for name in frame.columns} if frame.columns.is_unique else None
    if plain is None or not all(type(name) is str for name in plain):
        return None
    if not all(values.is_plain(items) for items in plain.values()):
        return None
    again = pd.DataFrame(plain)
    same = again.equals(frame) and list(again.dtypes) == list(frame.dtypes)
    return f"pd.DataFrame({pprint.pformat(plain, width=100, sort_dicts=False)})" if same else None
