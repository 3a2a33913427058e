"""Frames and arrays of executions: where their data is.

The log contains only previews of them.

The core does not store any data. A part that does provides one `Contents` for each `Healkit` (`hooks.Specs.contents`).
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from healkit.core.crossing import values
from healkit.errors import ViewGone

#: Origin of data in an execution: its arguments, its result, or the answer to a call, by the call's id.
Side = Literal["arguments", "result"] | str

#: Open instances, which can be asked for the data of an execution.
_open: weakref.WeakSet[Contents] = weakref.WeakSet()


class MentionedView(NamedTuple):
    """View that an audit entry names, with its file's name and the entry's place, execution and time."""

    name: str
    file_name: str
    position: int
    execution_id: str
    timestamp: datetime


class Contents:
    """Storage for the data of executions; this class stores nothing. `problem` says what could not be stored."""

    problem: str = ""

    def __init__(self) -> None:
        _open.add(self)

    def keep(
        self, trace_id: str, side: Side, tool_name: str, encoded: bytes, contents: Sequence[Any]
    ) -> None:
        """Store the large contents of encoded arguments or of a result; `contents` must not change afterwards."""

    def digests(self, trace_id: str, side: Side = "arguments") -> Mapping[int, str]:
        """Return the SHA-256 of the stored data behind each preview, by the preview's number."""
        return {}

    def load(self, trace_id: str, preview: values.Preview, side: Side) -> Any:
        """Return the data behind a preview; `MISSING` if it was not stored. Raises `ViewChanged`."""
        return MISSING

    def fault(self, view: MentionedView) -> str:
        """Describe the problem of a data file that the audit mentions; empty if there is none."""
        return ""

    def close(self) -> None:
        """Store the waiting data, as far as time allows."""
        _open.discard(self)


#: Placeholder for data that was not stored.
MISSING = object()


def data_behind(
    trace_id: str, preview: values.Preview, *, side: Side = "arguments", items_max: float = math.inf
) -> Any:
    """Return the data behind a preview in an execution's record.

    items_max: Data with more items is not loaded; it raises too. Raises `ViewGone`, or `ViewChanged` if the file no
    longer has the stored content.
    """
    if math.prod(preview.shown["shape"]) > items_max:
        raise ViewGone(f"{preview!r}: it has more than {items_max:,} items.")
    keepers = list(_open)
    problems = [keeper.problem for keeper in keepers if keeper.problem]
    for keeper in keepers:
        value = keeper.load(trace_id, preview, side)
        if value is not MISSING:
            return value
    raise ViewGone(f"{preview!r}: its data was not kept.", hint=" ".join(problems))


def same_data(one: str, other: str) -> bool:
    """Return whether two previews in the arguments of two executions belong to the same data, if it was stored."""
    return all(keeper.digests(one) == keeper.digests(other) for keeper in list(_open))
