"""JSON encoding of any Python value.

It is exact if JSON can hold the value, and readable if not. Both sides of the border use it: the worker for results and
call arguments, the host for arguments and for results of host functions. It never raises for a value. It only calls
numpy or pandas for values that belong to them. It lists the conversions, path by path, so that healkit can report them.

Non-finite floats become the strings of the protobuf JSON mapping ("NaN", "Infinity", "-Infinity").
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import fractions
import itertools
import math
import pathlib
import re
import sys
import uuid
from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Any

from healkit.core.contracts.rpc import NOTE_MAX_CHARS, NOTES_MAX
from healkit.core.wire import claims

if TYPE_CHECKING:
    from pandas import DataFrame


#: Depth at which structures are cut: JSON readers recurse, and so does this module.
MAX_DEPTH = 64
#: Key of a tag, which represents a value that JSON cannot hold exactly.
TAG = "@"
#: Maximum nesting with tags; the message around them adds a few levels.
TAGGED_DEPTH = claims.MAX_DEPTH - 10
#: Integers up to this many bits (617 digits) are written in decimal. Python does not convert an int with more
#: digits than `sys.set_int_max_str_digits` allows to text, or back: 4,300 by default, 640 at the least.
DECIMAL_BITS = 2048
#: Digits that are read at once, and up to which they are counted exactly.
_DIGITS_AT_ONCE, _COUNTED_DIGITS = 600, 100_000
#: Maximum number of rows of a DataFrame, and of bytes of a `bytes`, that are written out.
MAX_ROWS = 1000
MAX_BLOB_BYTES = 64 * 1024
#: Maximum length of a key in a path, and of a path that may still grow, in characters: each item has its own
#: path.
_KEY_MAX_CHARS, _PATH_MAX_CHARS = 100, 400

_PLAIN_TYPES = (bool, int, float, str)
#: Depth of a value's outline, and number of items that it reads from each container.
_OUTLINE_DEPTH, _OUTLINE_ITEMS = 4, 50
#: In an outline, numbers and None are keys of a dict: as values they would be plain JSON.
_BEYOND_JSON = re.compile(r"\b(?:set|frozenset|int|float|bool|NoneType)\b")
_PLAIN = (
    datetime.datetime, datetime.date, datetime.time, decimal.Decimal, uuid.UUID, pathlib.PurePath, datetime.timedelta,
)  # fmt: skip

#: Types without a JSON form that are written as Python's `repr`.
_WRITTEN = {complex, range, slice, fractions.Fraction, type(...)}


def type_only(value: object) -> str:
    """Return `<package.Class object>`: the only description of a foreign object that does not run its code."""
    kind = type(value)
    return f"<{kind.__module__}.{kind.__qualname__} object>"


class Preview:
    """Placeholder in a record for a frame or an array of which it keeps only a part; `shown` is that part, as JSON.

    `number` counts the previews of one record, from 0; the data itself may be stored as a view.
    """

    def __init__(self, shown: dict[str, Any], number: int = 0) -> None:
        self.shown, self.number = shown, number

    def __repr__(self) -> str:
        """Return its class and shape for cards and lists: `DataFrame 200,000 × 8`."""
        shape = " × ".join(f"{size:,}" for size in self.shown.get("shape", ()))
        return f"{self.shown.get('type')} {shape}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Preview) and self.shown == other.shown

    __hash__ = None  # type: ignore[assignment]  # what it shows is a dict


def is_from_library(error: BaseException) -> bool:
    """Return whether an error comes from a library or a value's code; panics of polars are not `Exception`s."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def encodable(text: str) -> str:
    """Return text that UTF-8 can encode: a lone surrogate becomes its escape."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def is_long(value: int) -> bool:
    """Return whether an integer has too many digits to be written out."""
    return value.bit_length() > DECIMAL_BITS


def int_text(value: int, max_bits: int = DECIMAL_BITS) -> str:
    """Return an integer as text: its digits, or their number, such as `<int of 5,001 digits>`."""
    if value.bit_length() <= max_bits:
        return int.__repr__(value)
    number = abs(int(value))
    digits, about = int(math.log10(number)) + 1, "about "
    if digits <= _COUNTED_DIGITS:
        digits, about = digits + (number >= 10**digits) - (number < 10 ** (digits - 1)), ""
    return f"<{'negative ' if value < 0 else ''}int of {about}{digits:,} digits>"


class LongInt(int):
    """Integer whose text, in messages about it, is the number of its digits."""

    __repr__ = __str__ = int_text


def read_int(text: str) -> int:
    """Return the integer for a text of decimal digits of any length; used as `parse_int` of `json.loads`."""
    if len(text) <= _DIGITS_AT_ONCE:
        return int(text)
    if text[0] in "+-":
        return -read_int(text[1:]) if text[0] == "-" else read_int(text[1:])
    half = len(text) // 2
    ahead: int = read_int(text[:half]) * 10 ** (len(text) - half)
    return ahead + read_int(text[half:])


class ValueTooLarge(Exception):
    """Error for a value above its size limit, raised before anything of that size is built."""


def to_jsonable(
    value: object,
    describe: Callable[[object], str] = type_only,
    *,
    max_chars: int | None = None,
    preview: Callable[[object], Any] | None = None,
    long: Callable[[int], Any] = int_text,
) -> tuple[Any, list[str]]:
    """Convert a value to plain dicts, lists, strings and numbers, and list the conversions.

    describe: Turns an object of an unknown class into text. The host uses `type_only`, because a foreign `__repr__` may
        never end; the worker passes a function with a time limit.
    max_chars: Maximum amount of text, where each item of a container counts as one; above it, raises `ValueTooLarge`.
    preview: Returns the replacement of an array, a frame or a table, or None to write it out.
    long: Returns the replacement of an int that is too long to be written out.
    """
    walker = _Walker(describe, max_chars, preview, long)
    return walker.walk(value, "$", 0), walker.notes


def type_outline(value: object, depth: int = 0) -> str:
    """Return the types of a value that JSON does not show: `set`, `list[tuple]`, `dict[int]`; empty for a plain value.

    It reads only builtin containers, the first items of each, to a small depth.
    """
    kind = type(value)
    if value is None or kind in _PLAIN_TYPES:
        return ""
    inside: set[str] = set()
    if depth < _OUTLINE_DEPTH and kind in (list, tuple, set, frozenset):
        some = itertools.islice(value, _OUTLINE_ITEMS)  # type: ignore[call-overload]  # a container
        inside = {type_outline(item, depth + 1) for item in some}
    elif depth < _OUTLINE_DEPTH and isinstance(value, dict):
        for key, item in itertools.islice(dict.items(value), _OUTLINE_ITEMS):
            inside |= {"" if type(key) is str else type(key).__name__, type_outline(item, depth + 1)}
        kind = dict
    parts = sorted(inside - {""})
    if kind in (list, dict) and not parts:
        return ""
    return f"{kind.__name__}[{', '.join(parts)}]" if parts else kind.__name__


def is_beyond_json(outline: str) -> bool:
    """Return True for an outline with a set, or a dict whose keys are not texts; JSON shows them differently."""
    return bool(_BEYOND_JSON.search(outline))


def is_plain(value: Any, depth: int = 0) -> bool:
    """Return True for a value that JSON holds exactly: lists, dicts with text keys, text, finite numbers, None.

    A dict that looks like a tag does not count. Texts are not searched for lone surrogates.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return not is_long(value)
    if kind is float:
        return math.isfinite(value)
    if depth >= TAGGED_DEPTH:
        return False
    if kind is list:
        return all(is_plain(item, depth + 1) for item in value)
    if kind is dict:
        plain = TAG not in value and set(map(type, value)) <= {str}
        return plain and all(is_plain(item, depth + 1) for item in value.values())
    return False


class _Walker:
    """Conversion of one value: the notes so far, and the containers around the current item (to detect cycles)."""

    def __init__(
        self,
        describe: Callable[[object], str],
        max_chars: int | None,
        preview: Callable[[object], Any] | None,
        long: Callable[[int], Any],
    ) -> None:
        self.describe = describe
        self.long = long
        self.preview = preview
        self.left = math.inf if max_chars is None else max_chars
        self.notes: list[str] = []
        self.open: set[int] = set()

    def note(self, path: str, text: str) -> None:
        if len(self.notes) < NOTES_MAX - 1:
            self.notes.append(encodable(f"{path}: {text}")[:NOTE_MAX_CHARS])
        elif len(self.notes) == NOTES_MAX - 1:
            self.notes.append("… and more")

    def spend(self, chars: int) -> None:
        self.left -= chars
        if self.left < 0:
            raise ValueTooLarge

    def is_kept(self, value: Any) -> bool:
        """Count a leaf that JSON holds exactly, and return True; most leaves are, and need neither path nor notes."""
        kind = type(value)
        if kind is str:
            if not value.isascii():
                return False
            self.left -= len(value)
        elif kind is float:
            if not math.isfinite(value):
                return False
        elif kind is int:
            if is_long(value):
                return False
        elif value is not None and kind is not bool:
            return False
        self.left -= 1
        if self.left < 0:
            raise ValueTooLarge
        return True

    def walk(self, value: object, path: str, depth: int) -> Any:
        self.spend(1)
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return self.whole(value, path)  # type: ignore[arg-type]  # `kind` says so, which mypy does not see
        if kind is str:
            return self.text(value, path)  # type: ignore[arg-type]  # `kind` says so, which mypy does not see
        if kind is float:
            return self.number(value, path)  # type: ignore[arg-type]  # `kind` says so, which mypy does not see
        if depth > MAX_DEPTH:
            self.note(path, f"nested deeper than {MAX_DEPTH} levels, cut")
            return "…"
        if id(value) in self.open:
            self.note(path, "refers back to a value it is part of, cut")
            return "<cycle>"
        self.open.add(id(value))
        try:
            return self.compound(value, path, depth)
        except ValueTooLarge:
            raise
        except BaseException as error:
            if not is_from_library(error):
                raise
            self.note(path, f"{type_only(value)} raised {type(error).__name__} while it was read")
            return type_only(value)
        finally:
            self.open.discard(id(value))

    def compound(self, value: object, path: str, depth: int) -> Any:
        kind = type(value)
        if kind is dict or (kind is not list and isinstance(value, Mapping)):
            return self.mapping(value, path, depth)  # type: ignore[arg-type]  # `kind` says so, which mypy does not see
        if isinstance(value, list | tuple):
            return [
                item if self.is_kept(item) else self.walk(item, f"{path}[{i}]", depth + 1)
                for i, item in enumerate(list(value))
            ]
        if isinstance(value, Set):
            self.note(path, f"{type(value).__name__} shown as a list")
            items = [self.walk(item, f"{path}{{}}", depth + 1) for item in value]
            return sorted(items, key=lambda item: (type(item).__name__, str(item)))
        if isinstance(value, bytes | bytearray | memoryview):
            return self.blob(bytes(value), path)
        if isinstance(value, Preview):
            return self.walk(value.shown, path, depth)
        return self.scalar(value, path, depth)

    def scalar(self, value: object, path: str, depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return self.walk(value.value, path, depth + 1)
        for base in (bool, int, str):
            if isinstance(value, base):
                return self.text(str.__str__(value), path) if base is str else self.whole(int(value), path)
        if isinstance(value, float):
            return self.number(float(value), path)
        if type(value) in _WRITTEN:
            return str(value)
        if isinstance(value, _PLAIN):
            return self.text(value.isoformat() if hasattr(value, "isoformat") else str(value), path)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
            self.note(path, f"{type(value).__name__} shown as its fields")
            return self.mapping(fields, path, depth)
        converted = self.scientific(value, path, depth)
        if converted is not None:
            return converted[0]
        text = self.describe(value)
        self.note(path, f"{type(value).__name__} shown as text")
        return self.text(text, path)

    def scientific(self, value: object, path: str, depth: int) -> tuple[Any] | None:
        """Convert a value of numpy or pandas, if these are imported, to a 1-tuple, because None is a value too."""
        if self.preview is not None and (preview := self.preview(value)) is not None:
            self.note(path, f"{type(value).__name__} shown in part")
            return (self.walk(preview, path, depth),)
        numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
        if numpy is not None:
            if isinstance(value, numpy.generic):
                return (self.walk(value.item(), path, depth + 1),)
            if isinstance(value, numpy.ndarray):
                self.note(path, f"array of shape {value.shape} shown as nested lists")
                return (self.walk(value.tolist(), path, depth + 1),)
        if pandas is not None:
            if value is pandas.NA or value is pandas.NaT:
                return (None,)
            if isinstance(value, pandas.DataFrame):
                return (self.frame(value, path, depth),)
            if isinstance(value, pandas.Series | pandas.Index):
                self.note(path, f"{type(value).__name__} of {len(value)} shown as a list")
                return (
                    [self.walk(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value.tolist())],
                )
        return None

    def frame(self, frame: DataFrame, path: str, depth: int) -> dict[str, Any]:
        rows, columns = frame.shape
        cut = f", its first {MAX_ROWS} rows" if rows > MAX_ROWS else ""
        self.note(path, f"DataFrame of {rows} x {columns} shown as columns and rows{cut}")
        records = frame.head(MAX_ROWS).itertuples(index=False, name=None)
        return {
            "shape": [rows, columns],
            "columns": [self.text(str(name), path) for name in frame.columns],
            "rows": [[self.walk(cell, f"{path}.rows", depth + 1) for cell in record] for record in records],
        }

    def mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in list(value.items()):
            if type(key) is str and key.isascii():
                name = key
                self.left -= len(key)  # `is_kept` reads the rest
            else:
                name = self.text(key, path) if type(key) is str else self.key(key, path)
            if name in result:
                self.note(path, f"two keys that both read {name!r}; the later one is kept")
            if self.is_kept(item):
                result[name] = item
                continue
            below = f"{path}.{name[:_KEY_MAX_CHARS]}" if len(path) < _PATH_MAX_CHARS else path
            result[name] = self.walk(item, below, depth + 1)
        return result

    def key(self, key: object, path: str) -> str:
        self.note(path, f"a key of type {type(key).__name__} shown as text")
        if isinstance(key, int) and not isinstance(key, bool):
            return int_text(key)
        text = str(key) if isinstance(key, (int, float, str, bytes, tuple, *_PLAIN)) else self.describe(key)
        return self.text(text, path)

    def text(self, value: str, path: str) -> str:
        self.spend(len(value))
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            self.note(path, "lone surrogates shown as escapes")
            return encodable(value)
        return value

    def whole(self, value: int, path: str) -> Any:
        if not is_long(value):
            return value
        self.note(path, f"shown as {int_text(value)}, too long to be written out")
        return self.long(value)

    def number(self, value: float, path: str) -> float | str:
        if math.isfinite(value):
            return value
        self.note(path, f"{value} shown as text, JSON has no such number")
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"

    def blob(self, value: bytes, path: str) -> dict[str, Any]:
        self.note(path, f"{len(value):,} bytes shown as base64")
        return {"base64": base64.b64encode(value[:MAX_BLOB_BYTES]).decode(), "size_bytes": len(value)}
