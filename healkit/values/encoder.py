"""Encoder of Python's own values.

An instance of an enumeration or a data class arrives as what it holds, with a note, because its class may not exist on
the other side.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import struct
import uuid
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from healkit.contracts.encoding import DECIMAL_BITS, NOTE_MAX_CHARS, NOTES_MAX, TAG, TAGGED_DEPTH, Preview
from healkit.values.plain import FACTORIES, PATHS, Buffers, CannotCross, inline

EncodeForeign = Callable[["Encoder", Any, str, int], Any]


class Encoder:
    """Encoding of one value: its buffers, its notes, and the containers around the current item (to see a cycle).

    `foreign` returns the tag of a value of numpy, pandas or Arrow, and None for any other.
    """

    def __init__(self, buffers: Buffers | None, foreign: EncodeForeign) -> None:
        self.buffers = buffers
        self._foreign = foreign
        #: How many previews stand in it so far.
        self.previews = 0
        self.notes: list[str] = []
        self._open: set[int] = set()

    def note(self, path: str, text: str) -> None:
        """Note that an item arrives as what it holds."""
        if len(self.notes) < NOTES_MAX:
            self.notes.append(f"{path}: {text}"[:NOTE_MAX_CHARS])

    def content(self, data: Any) -> int | str:
        """Return what stands for bytes in the JSON: their number among the buffers, or base64 text."""
        if self.buffers is None:
            return inline(data)
        self.buffers.append(data)
        return len(self.buffers) - 1

    def item(self, value: object, path: str, depth: int) -> Any:
        """Return an item as JSON can hold it."""
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if value.bit_length() <= DECIMAL_BITS else _tag("int", hex(value))  # type: ignore[attr-defined, arg-type]  # `kind` says so
        if kind is str:
            return self.text(value)  # type: ignore[arg-type]  # `kind` says so
        if kind is float:
            return value if math.isfinite(value) else _tag("float", struct.pack("<d", value).hex())  # type: ignore[arg-type]  # `kind` says so
        if depth > TAGGED_DEPTH:
            raise CannotCross(path, f"nested deeper than {TAGGED_DEPTH} levels")
        if id(value) in self._open:
            raise CannotCross(path, "refers back to a value that it is part of")
        self._open.add(id(value))
        try:
            return self._compound(value, path, depth)
        finally:
            self._open.discard(id(value))

    def text(self, value: str) -> Any:
        """Return text; a lone surrogate, which UTF-8 has no bytes for, makes it a tag."""
        try:
            value.encode()
        except UnicodeEncodeError:
            return _tag("str", inline(value.encode(errors="surrogatepass")))
        return value

    def items(self, values: Any, path: str, depth: int) -> list[Any]:
        """Return the items of a sequence."""
        return [self.item(item, f"{path}[{i}]", depth) for i, item in enumerate(values)]

    def pairs(self, value: Mapping[Any, Any], path: str, depth: int) -> list[list[Any]]:
        """Return the items of a mapping as pairs, in order."""
        return [
            [
                self.item(key, f"{path}, key {_short(key)}", depth),
                self.item(item, f"{path}[{_short(key)}]", depth),
            ]
            for key, item in value.items()
        ]

    def _compound(self, value: object, path: str, depth: int) -> Any:
        kind = type(value)
        if kind is list:
            return self.items(value, path, depth + 1)
        if kind is dict:
            return self._dict(value, path, depth)  # type: ignore[arg-type]  # `kind` says so
        if kind in _ENCODERS:
            return _tag(kind.__name__, *_ENCODERS[kind](self, value, path, depth + 2))
        if isinstance(value, enum.Enum):
            self.note(path, f"{kind.__name__} arrives as its value")
            return self.item(value.value, path, depth + 1)
        if isinstance(value, pathlib.PurePath):
            return _tag("path", _path_kind(value, path), self.text(str(value)))
        if isinstance(value, datetime.tzinfo):
            return _tag("zone", *zone_parts(value, path))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            self.note(path, f"{kind.__name__} arrives as a dict of its fields")
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return self._dict(fields, path, depth)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            self.note(path, f"{kind.__name__} arrives as a tuple")
            return _tag("tuple", self.items(value, path, depth + 2))
        if (tag := self._foreign(self, value, path, depth)) is not None:
            return tag
        if kind is Preview:
            raise CannotCross(path, f"{value!r} as the record shows it, without its data")
        raise CannotCross(path, f"a value of type {_name(kind)}")

    def _dict(self, value: dict[Any, Any], path: str, depth: int) -> Any:
        if all(type(key) is str for key in value) and TAG not in value:
            try:
                for key in value:
                    key.encode()
            except UnicodeEncodeError:
                pass
            else:
                return {key: self.item(item, f"{path}.{key[:100]}", depth + 1) for key, item in value.items()}
        return _tag("dict", self.pairs(value, path, depth + 3))


def _tag(name: str, *rest: Any) -> dict[str, Any]:
    return {TAG: [name, *rest]}


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _short(key: object) -> str:
    """Return a key for a path; the class of one whose own code would have to run."""
    return repr(key)[:100] if type(key) in {int, float, str, bytes, bool, type(None)} else type(key).__name__


def _path_kind(value: pathlib.PurePath, path: str) -> str:
    kind = type(value)
    if kind.__module__.partition(".")[0] != "pathlib" or kind.__name__ not in PATHS:
        raise CannotCross(path, f"a value of type {_name(kind)}")
    return kind.__name__


def zone_parts(zone: datetime.tzinfo | None, path: str) -> list[Any]:
    """Return a time zone: nothing, a fixed offset with its name, or a key of the IANA database."""
    if zone is None:
        return []
    if type(zone) is datetime.timezone:
        offset, name = zone.utcoffset(None), zone.tzname(None)
        plain = [offset.days, offset.seconds, offset.microseconds]
        return [plain] if name == datetime.timezone(offset).tzname(None) else [plain, name]
    if type(zone) is zoneinfo.ZoneInfo and zone.key is not None:
        return [zone.key]
    raise CannotCross(path, f"a time zone of type {_name(type(zone))}")


def _sorted_items(encoder: Encoder, value: Any, path: str, depth: int) -> list[Any]:
    return [[encoder.item(item, f"{path}{{}}", depth) for item in value]]


def _moment(value: Any, path: str) -> list[Any]:
    return [value.replace(tzinfo=None, fold=0).isoformat(), value.fold, zone_parts(value.tzinfo, path)]


def _factory(value: Any, path: str) -> str | None:
    if value.default_factory is None:
        return None
    for name, kind in FACTORIES.items():
        if value.default_factory is kind:
            return name
    raise CannotCross(path, "a defaultdict whose factory is not a builtin type")


#: Encoders by exact type: what stands behind the type's name in the tag.
_ENCODERS: dict[type, Callable[[Encoder, Any, str, int], Sequence[Any]]] = {
    tuple: lambda encoder, value, path, depth: [encoder.items(value, path, depth)],
    set: _sorted_items,
    frozenset: _sorted_items,
    bytes: lambda _e, value, _p, _d: [inline(value)],
    bytearray: lambda _e, value, _p, _d: [inline(value)],
    complex: lambda _e, value, _p, _d: [struct.pack("<dd", value.real, value.imag).hex()],
    decimal.Decimal: lambda _e, value, _p, _d: [str(value)],
    fractions.Fraction: lambda _e, value, _p, _d: [hex(value.numerator), hex(value.denominator)],
    range: lambda _e, value, _p, _d: [hex(value.start), hex(value.stop), hex(value.step)],
    slice: lambda encoder, value, path, depth: encoder.items((value.start, value.stop, value.step), path, depth),
    datetime.date: lambda _e, value, _p, _d: [value.isoformat()],
    datetime.time: lambda _e, value, path, _d: _moment(value, path),
    datetime.datetime: lambda _e, value, path, _d: _moment(value, path),
    datetime.timedelta: lambda _e, value, _p, _d: [value.days, value.seconds, value.microseconds],
    uuid.UUID: lambda _e, value, _p, _d: [value.hex],
    type(...): lambda _e, _v, _p, _d: [],
    collections.OrderedDict: lambda encoder, value, path, depth: [encoder.pairs(value, path, depth + 1)],
    collections.Counter: lambda encoder, value, path, depth: [encoder.pairs(value, path, depth + 1)],
    collections.defaultdict: lambda encoder, value, path, depth: [
        encoder.pairs(value, path, depth + 1), _factory(value, path),
    ],
    collections.deque: lambda encoder, value, path, depth: [encoder.items(value, path, depth), value.maxlen],
}  # fmt: skip
