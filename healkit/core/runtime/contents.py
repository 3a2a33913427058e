"""Frames and arrays of executions: who keeps their data.

The log has previews of them.

The core keeps none. A part that does has one `Contents` for each `Healkit` (`hooks.Specs.contents`).
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from healkit.core.crossing import values
from healkit.errors import ViewGone

#: Side of an execution that data belongs to: its arguments, its result, or the answer to a call, by the call's id.
Side = Literal["arguments", "result"] | str

#: Those that are open, to be asked for the data of an execution.
_open: weakref.WeakSet[Contents] = weakref.WeakSet()


class MentionedView(NamedTuple):
    """View that an entry names, with the name of its file, and the entry's place, execution and time."""

    name: str
    file_name: str
    position: int
    execution_id: str
    timestamp: datetime


class Contents:
    """Keeper of the data of executions; this one keeps none. `problem` says what could not be kept."""

    problem: str = ""

    def __init__(self) -> None:
        _open.add(self)

    def keep(
        self, trace_id: str, side: Side, tool_name: str, encoded: bytes, contents: Sequence[Any]
    ) -> None:
        """Keep what is large in encoded arguments or in a result; `contents` must never change any more."""

    def digests(self, trace_id: str, side: Side = "arguments") -> Mapping[int, str]:
        """Return the SHA-256 of the data behind each preview, by its number; of what was kept."""
        return {}

    def load(self, trace_id: str, preview: values.Preview, side: Side) -> Any:
        """Return the data behind a preview; `MISSING` where it was not kept. Raises `ViewChanged`."""
        return MISSING

    def fault(self, view: MentionedView) -> str:
        """Say what is wrong with the file of data that an audit mentions; empty where nothing is."""
        return ""

    def close(self) -> None:
        """Keep the data that is still waiting, as far as time allows."""
        _open.discard(self)


#: Stands for data that was not kept.
MISSING = object()


def data_behind(
    trace_id: str, preview: values.Preview, *, side: Side = "arguments", items_max: float = math.inf
) -> Any:
    """Return the data that a preview in an execution's record stands for.

    items_max: more items than this are not loaded, and are refused too. Raises `ViewGone`, and `ViewChanged` where the
    file does not hold what was kept.
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
    """Return whether the previews in two executions' arguments stand for the same data, as far as it was kept."""
    return all(keeper.digests(one) == keeper.digests(other) for keeper in list(_open))
