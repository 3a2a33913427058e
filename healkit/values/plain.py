"""Terms of the exact encoding, and values that need none.

A value arrives equal and of the same type, or `CannotCross` is raised with the path of the item that cannot. What JSON
holds exactly is encoded as JSON, untouched; anything else is a tag: an object with the one key "@", whose value is a
list of the type's name and what it takes to build it again. `encoder` writes tags, `decoder` reads them.

Large contents (arrays, frames) go into `buffers` where the caller gives a list for them, and into the JSON as base64
where it gives none.
"""

from __future__ import annotations

import base64
import collections
import pathlib
from collections.abc import Mapping
from typing import Any

from healkit.contracts.encoding import TAG, Preview

#: The tag's key as it stands in JSON: bytes without it hold no tag.
MARK = f'"{TAG}"'.encode()
#: Marks what stands for a frame where a schema is held against a value.
FRAME = "@frame"

Buffers = list[Any]
#: Limit of what frames and arrays take where they arrive, for whoever names no other, in bytes.
EXPANDED_MAX_BYTES = 1024**3
#: Limit of the numbers of a Fraction, in bits: to reduce it takes the square of their size.
FRACTION_BITS = 2**15
#: What makes the empty containers of a `defaultdict`.
FACTORIES: dict[str, Any] = {kind.__name__: kind for kind in (list, dict, set, int, float, str, bool, tuple)}
PATHS: dict[str, Any] = {
    kind.__name__: kind for kind in (pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath)
}


class CannotCross(ValueError):
    """Error for a value that cannot cross as it is; `path` says where in the value, `why` what stands there."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


class TooLarge(CannotCross):
    """Error for a value that would take more than is allowed where it arrives."""


class BadValue(ValueError):
    """Error for an encoded value that breaks the format."""


def outweighs(value: Any, limit: int) -> bool:
    """Return whether the texts, bytes and items in a value are more than `limit`; asked before they are encoded."""
    total, left, seen = 0, list[Any]([value]), set[int]()
    while left and total <= limit:
        item = left.pop()
        kind = type(item)
        if kind in {str, bytes, bytearray}:
            total += len(item)
        elif kind in {list, tuple, set, frozenset, dict} and id(item) not in seen:
            seen.add(id(item))
            total += len(item)
            left += item
            if kind is dict:
                left += item.values()
    return total > limit


def is_whole(value: object) -> bool:
    """Return whether a value from a record holds no `Preview`."""
    if isinstance(value, Preview):
        return False
    if isinstance(value, Mapping):
        return all(map(is_whole, value.values()))
    return not isinstance(value, list | tuple | set | frozenset | collections.deque) or all(
        map(is_whole, value)
    )


def inline(data: bytes) -> str:
    """Return bytes as a text of the JSON."""
    return base64.b64encode(data).decode()
