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

from healkit.contracts.encoding import (
    NOTE_MAX_CHARS,
    NOTES_MAX,
    TAG,
    TAGGED_DEPTH,
    Preview,
    encodable,
    int_text,
    is_long,
)
from healkit.values.decoder import Decoder
from healkit.values.plain import FACTORIES, FRACTION_BITS, PATHS, Buffers, CannotCross, TooLarge, inline

#: Classes whose instances hold more than the fields of a data class.
_HOLDS_MORE = (
    dict,
    list,
    tuple,
    set,
    frozenset,
    str,
    bytes,
    bytearray,
    int,
    float,
    complex,
    collections.deque,
)
EncodeForeign = Callable[["Encoder", Any, str, int], Any]


class Encoder:
    """Encoding of one value: its buffers, its notes, and the containers around the current item (to see a cycle).

    `foreign` returns the tag of a value of numpy, pandas or Arrow, and None for any other. `limit_bytes` is how much
    the value may take where it arrives, beyond its own bytes.
    """

    def __init__(
        self, buffers: Buffers | None, foreign: EncodeForeign, limit_bytes: int | None = None
    ) -> None:
        self.buffers = buffers
        self._foreign = foreign
        self._limit_bytes = limit_bytes
        self._spent = 0
        #: How many items arrive as what they hold.
        self._converted = 0
        #: How many previews stand in it so far.
        self.previews = 0
        self.notes: list[str] = []
        self._open: set[int] = set()

    def note(self, path: str, text: str) -> None:
        """Note that an item arrives as what it holds."""
        self._converted += 1
        if len(self.notes) < NOTES_MAX:
            self.notes.append(encodable(f"{path}: {text}")[:NOTE_MAX_CHARS])

    def spend(self, path: str) -> Callable[[int], None] | None:
        """Return what counts memory where the value arrives, beside its own bytes; None where that has no limit."""
        limit = self._limit_bytes
        if limit is None:
            return None

        def count(size: int) -> None:
            self._spent += size
            if self._spent > limit:
                raise TooLarge(
                    path, f"frames or arrays that would take more than {limit:,} bytes where they arrive"
                )

        return count

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
            return _tag("int", hex(value)) if is_long(value) else value  # type: ignore[arg-type]  # `kind` says so
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
        except (CannotCross, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - a foreign class may raise anything from any method
            why = f"a value of type {_name(kind)} that raised {type(error).__name__} while it was read"
            raise CannotCross(path, why) from None
        finally:
            self._open.discard(id(value))

    def text(self, value: str) -> Any:
        """Return text; a lone surrogate, which UTF-8 has no bytes for, makes it a tag."""
        return value if _is_text(value) else _tag("str", inline(value.encode(errors="surrogatepass")))

    def items(self, values: Any, path: str, depth: int) -> list[Any]:
        """Return the items of a sequence."""
        return [self.item(item, f"{path}[{i}]", depth) for i, item in enumerate(values)]

    def pairs(self, value: Mapping[Any, Any], path: str, depth: int) -> list[list[Any]]:
        """Return the items of a mapping as pairs, in order."""
        before = self._converted
        keys = [self.item(key, f"{path}, key {_short(key)}", depth) for key in value]
        if self._converted > before:
            self._check_keys(keys, f"{path}, its keys")
        items = (self.item(item, f"{path}[{_short(key)}]", depth) for key, item in value.items())
        return [list(pair) for pair in zip(keys, items, strict=True)]

    def unordered(self, value: Any, path: str, depth: int) -> list[Any]:
        """Return the items of a set."""
        before = self._converted
        items = [self.item(item, f"{path}{{}}", depth) for item in value]
        if self._converted > before:
            self._check_keys(items, f"{path}{{}}")
        return items

    def _check_keys(self, keys: list[Any], path: str) -> None:
        """Raise `CannotCross` where keys, some of which arrive as what they hold, are no keys any more, or the same."""
        decoder = Decoder(self.buffers or (), lambda *_: object())
        try:
            if len({decoder.item(key) for key in keys}) == len(keys):
                return
            why = "two that arrive as the same value"
        except TypeError:
            why = "one that arrives as a dict or a list, which cannot be a key or an item of a set"
        raise CannotCross(path, why)

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
        if (
            dataclasses.is_dataclass(value)
            and not isinstance(value, type)
            and not isinstance(value, _HOLDS_MORE)
        ):
            self.note(path, f"{kind.__name__} arrives as a dict of its fields")
            return self._dict(_fields_of(value, path), path, depth)
        if is_model(kind):
            self.note(path, f"{kind.__name__} arrives as a dict of its fields")
            return self._dict({name: getattr(value, name) for name in kind.model_fields}, path, depth)  # type: ignore[attr-defined]  # a model has them
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            self.note(path, f"{kind.__name__} arrives as a tuple")
            return _tag("tuple", self.items(value, path, depth + 2))
        if (tag := self._foreign(self, value, path, depth)) is not None:
            return tag
        if kind is Preview:
            raise CannotCross(path, f"{value!r} as the record shows it, without its data")
        raise CannotCross(path, f"a value of type {_name(kind)}")

    def _dict(self, value: dict[Any, Any], path: str, depth: int) -> Any:
        if all(type(key) is str and _is_text(key) for key in value) and TAG not in value:
            return {key: self.item(item, f"{path}.{key[:100]}", depth + 1) for key, item in value.items()}
        return _tag("dict", self.pairs(value, path, depth + 3))


def _fields_of(value: Any, path: str) -> dict[str, Any]:
    try:
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    except Exception as error:  # noqa: BLE001 - a field may be missing, or a property of the class's own
        said = f"a field of which could not be read: {type(error).__name__}"
        raise CannotCross(path, f"a value of type {_name(type(value))}, {said}") from None


def is_model(kind: type) -> bool:
    """Return whether a class is a pydantic model, without loading pydantic."""
    return any(base.__module__ == "pydantic.main" and base.__name__ == "BaseModel" for base in kind.__mro__)


def _tag(name: str, *rest: Any) -> dict[str, Any]:
    return {TAG: [name, *rest]}


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _short(key: object) -> str:
    """Return a key for a path; the class of one whose own code would have to run."""
    if type(key) is int:
        return int_text(key)[:100]
    return repr(key)[:100] if type(key) in {float, str, bytes, bool, type(None)} else type(key).__name__


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
        if name == datetime.timezone(offset).tzname(None):
            return [plain]
        if _is_text(name):
            return [plain, name]
    if type(zone) is zoneinfo.ZoneInfo and zone.key is not None and _is_found_by_key(zone):
        return [zone.key]
    raise CannotCross(path, f"a time zone of type {_name(type(zone))}")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_found_by_key(zone: zoneinfo.ZoneInfo) -> bool:
    """Return False for a zone that was read from a file: another may have its key."""
    try:
        zone.__reduce__()
    except Exception:  # noqa: BLE001 - what it raises is named by pickle, which this package does not import
        return False
    return True


def _fraction(value: fractions.Fraction, path: str) -> list[str]:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > FRACTION_BITS:
        raise CannotCross(path, f"a Fraction of numbers of more than {FRACTION_BITS:,} bits")
    return [hex(value.numerator), hex(value.denominator)]


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
    set: lambda encoder, value, path, depth: [encoder.unordered(value, path, depth)],
    frozenset: lambda encoder, value, path, depth: [encoder.unordered(value, path, depth)],
    bytes: lambda _e, value, _p, _d: [inline(value)],
    bytearray: lambda _e, value, _p, _d: [inline(value)],
    complex: lambda _e, value, _p, _d: [struct.pack("<dd", value.real, value.imag).hex()],
    decimal.Decimal: lambda _e, value, _p, _d: [str(value)],
    fractions.Fraction: lambda _e, value, path, _d: _fraction(value, path),
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
