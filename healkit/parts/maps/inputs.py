"""Inputs of a map, one after the other, in bounded memory.

From a frame, a file, or anything that can be iterated over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.core.contracts.vault import VaultEntry
from healkit.core.runtime.execution import arguments_of, logged
from healkit.errors import UsageInvalid

if TYPE_CHECKING:
    from healkit.core.store.log_reader import Log

#: Rows of a frame that are made dicts at a time.
_ROWS = 1000
_SUFFIXES = (".jsonl", ".csv", ".parquet")


def size_of(inputs: object) -> int | None:
    """Return the number of inputs, if it is known without reading them."""
    if isinstance(inputs, str | Path):
        if Path(inputs).suffix == ".parquet" and Path(inputs).is_file():
            from pyarrow.parquet import read_metadata

            return int(read_metadata(inputs).num_rows)
        return None
    return len(inputs) if hasattr(inputs, "__len__") else None


def inputs_of(given: object, entry: VaultEntry, log: Log) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments of each execution; a value that is not a dict is passed to a tool's only parameter.

    given: A DataFrame, whose columns are parameters; rows of the log; a path of a `.jsonl`, `.csv` or `.parquet` file;
        executions; or an iterable.
    log: The log of the executions.

    Raises `UsageInvalid` for unreadable inputs, and `ArgumentsInvalid` if the log does not contain an execution's
    complete arguments.
    """
    items: Iterator[Any]
    if isinstance(given, str | Path):
        items = _file_rows(Path(given))
    elif hasattr(given, "iloc") and hasattr(given, "columns"):
        items = _frame_rows(given)
    elif isinstance(given, Iterable) and not isinstance(given, bytes | Mapping):
        items = iter(given)
    else:
        raise UsageInvalid(
            f"A map needs inputs, not a {type(given).__name__}.",
            hint="Give a list of dicts, a DataFrame, a generator, or the path of a .jsonl, .csv or .parquet file.",
        )
    parameters = list(entry.input_schema.get("properties", {}))
    for number, item in enumerate(items):
        if isinstance(item, Mapping):
            yield item
        elif hasattr(item, "trace_id") and hasattr(item, "arguments"):
            yield arguments_of(logged(log, item.log_id) if hasattr(item, "log_id") else item)
        elif len(parameters) == 1:
            yield {parameters[0]: item}
        else:
            names = ", ".join(parameters) or "no parameters"
            raise UsageInvalid(
                f"Input {number} is a {type(item).__name__}, but {entry.label} takes {names}.",
                hint="Give each input as a dict of names and values.",
            )


def _frame_rows(frame: Any) -> Iterator[dict[str, Any]]:
    for start in range(0, len(frame), _ROWS):
        rows: list[dict[Any, Any]] = frame.iloc[start : start + _ROWS].to_dict("records")
        for row in rows:
            yield {str(name): value for name, value in row.items()}


def _file_rows(path: Path) -> Iterator[Any]:
    """Yield the rows of a file; raise `UsageInvalid` with the place of an unreadable row."""
    if path.suffix not in _SUFFIXES:
        raise UsageInvalid(
            f"Inputs cannot be read from {str(path)!r}.",
            hint=f"The name of a file of inputs ends with {', '.join(_SUFFIXES)}.",
        )
    try:
        yield from _lines(path) if path.suffix == ".jsonl" else _batches(path)
    except (OSError, ValueError) as error:  # Arrow's errors are ValueErrors
        raise UsageInvalid(f"The inputs of {str(path)!r} cannot be read: {error}.") from error


def _lines(path: Path) -> Iterator[Any]:
    decode = msgspec.json.Decoder().decode
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield decode(line)
                except msgspec.DecodeError as error:
                    raise ValueError(f"line {number} is not JSON: {error}") from None


def _batches(path: Path) -> Iterator[Any]:
    if path.suffix == ".csv":
        from pyarrow.csv import open_csv

        with open_csv(path) as reader:
            yield from chain.from_iterable(batch.to_pylist() for batch in reader)
        return
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        yield from chain.from_iterable(batch.to_pylist() for batch in file.iter_batches(_ROWS))
