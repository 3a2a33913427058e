"""Exact encoding of values, as tags in JSON.

A value arrives equal and of the same type, or `CannotCross` is raised with the path of the item that cannot cross.
Values that JSON holds exactly are plain JSON. Every other value is a tag: an object with the single key "@". Its value
is a list of the type's name and the data to rebuild it. `Encoder` writes tags, `Decoder` reads them.

An instance of an enumeration or a data class arrives as its contents, with a note. Its class may not exist on the other
side. Large contents (arrays, frames) go into `buffers` if the caller passes a list; otherwise they go into the JSON, as
base64.

Every part of a tag is checked, since a worker may have forged it. A value from a worker has two limits. One is the
memory that it takes beyond its own bytes; the other is the time to hash and compare its keys and items.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import struct
import time
import uuid
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from healkit.core.contracts.rpc import NOTE_MAX_CHARS, NOTES_MAX
from healkit.core.wire.encoding import TAG, TAGGED_DEPTH, Preview, encodable, int_text, is_long

#: The key of a tag in JSON: bytes without it contain no tag.
MARK = f'"{TAG}"'.encode()
#: Placeholder in a preview for the values of a column that holds secrets.
HIDDEN = "(hidden)"
#: Key that marks the outline of a frame in a value that is checked against a schema.
FRAME = "@frame"

Buffers = list[Any]
#: Value of numpy, pandas, Arrow or polars, or a part of one; these libraries are not imported for their
#: types.
Foreign = Any
#: Default limit of the memory that frames and arrays take on arrival, in bytes.
EXPANDED_MAX_BYTES = 1024**3
#: Maximum size of the numbers in a Fraction, in bits: the time to reduce it grows with the square of their
#: size.
FRACTION_BITS = 2**15
#: Factories of a `defaultdict` that can cross, by name.
FACTORIES: dict[str, Any] = {kind.__name__: kind for kind in (list, dict, set, int, float, str, bool, tuple)}
PATHS: dict[str, Any] = {
    kind.__name__: kind for kind in (pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath)
}


class CannotCross(ValueError):
    """Error for a value that cannot cross unchanged; `path` says where in the value, `why` says what is there."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


class TooLarge(CannotCross):
    """Error for a value that would take too much memory on arrival."""


class BadValue(ValueError):
    """Error for an encoded value that violates the format."""


def outweighs(value: object, limit: int) -> bool:
    """Return whether the texts, bytes and items in a value exceed `limit`; checked before encoding."""
    total, pending, visited = 0, list[Any]([value]), set[int]()
    while pending and total <= limit:
        item = pending.pop()
        kind = type(item)
        if kind in {str, bytes, bytearray}:
            total += len(item)
        elif kind in {list, tuple, set, frozenset, dict} and id(item) not in visited:
            visited.add(id(item))
            total += len(item)
            pending += item
            if kind is dict:
                pending += item.values()
    return total > limit


def is_whole(value: object) -> bool:
    """Return whether a recorded value contains no `Preview`."""
    if isinstance(value, Preview):
        return False
    if isinstance(value, Mapping):
        return all(map(is_whole, value.values()))
    return not isinstance(value, list | tuple | set | frozenset | collections.deque) or all(
        map(is_whole, value)
    )


def inline(data: bytes) -> str:
    """Return bytes as base64 text for the JSON."""
    return base64.b64encode(data).decode()


# Writing.


#: Classes whose instances contain more than the fields of a data class.
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
    """Encoding of one value: its buffers, its notes, and the containers around the current item (to detect cycles).

    foreign: Returns the tag of a value of numpy, pandas or Arrow, and None for any other value.
    limit_bytes: Maximum memory that the value may take on arrival, beyond its own bytes.
    """

    def __init__(
        self, buffers: Buffers | None, foreign: EncodeForeign, limit_bytes: int | None = None
    ) -> None:
        self.buffers = buffers
        self._foreign = foreign
        self._limit_bytes = limit_bytes
        self._spent = 0
        #: Number of items that arrive as their contents.
        self._converted = 0
        #: Number of previews so far.
        self.previews = 0
        self.notes: list[str] = []
        self._open: set[int] = set()

    def note(self, path: str, text: str) -> None:
        """Note that an item arrives as its contents."""
        self._converted += 1
        if len(self.notes) < NOTES_MAX:
            self.notes.append(encodable(f"{path}: {text}")[:NOTE_MAX_CHARS])

    def spend(self, path: str) -> Callable[[int], None] | None:
        """Return a function that counts memory on arrival, beyond the value's own bytes; None without a limit."""
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
        """Return a reference to bytes for the JSON: their index in the buffers, or base64 text."""
        if self.buffers is None:
            return inline(data)
        self.buffers.append(data)
        return len(self.buffers) - 1

    def stream(self, write: Callable[[str | None], Any]) -> int | str:
        """Return a reference to a stream, which `write` returns or, given the path of a file, appends to it."""
        appended = getattr(self.buffers, "appended", None)
        if appended is None:
            return self.content(write(None))
        with appended() as file:
            write(file)
        assert self.buffers is not None
        return len(self.buffers) - 1

    def item(self, value: object, path: str, depth: int) -> Any:
        """Return an item in a form that JSON can hold."""
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
        """Return text; one with a lone surrogate, which UTF-8 cannot encode, becomes a tag."""
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
        """Raise `CannotCross` if converted keys are no longer hashable, or no longer distinct."""
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
        reason = f"a field of which could not be read: {type(error).__name__}"
        raise CannotCross(path, f"a value of type {_name(type(value))}, {reason}") from None


def is_model(kind: type) -> bool:
    """Return whether a class is a pydantic model, without importing pydantic."""
    return any(base.__module__ == "pydantic.main" and base.__name__ == "BaseModel" for base in kind.__mro__)


def _tag(name: str, *rest: object) -> dict[str, Any]:
    return {TAG: [name, *rest]}


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _short(key: object) -> str:
    """Return a key for a path; only its class if its `repr` would run foreign code."""
    if type(key) is int:
        return int_text(key)[:100]
    return repr(key)[:100] if type(key) in {float, str, bytes, bool, type(None)} else type(key).__name__


def _path_kind(value: pathlib.PurePath, path: str) -> str:
    kind = type(value)
    if kind.__module__.partition(".")[0] != "pathlib" or kind.__name__ not in PATHS:
        raise CannotCross(path, f"a value of type {_name(kind)}")
    return kind.__name__


def zone_parts(zone: datetime.tzinfo | None, path: str) -> list[Any]:
    """Return the parts of a time zone: nothing, a fixed offset with its name, or a key of the IANA database."""
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
    """Return False for a zone that was read from a file: another zone may have its key."""
    try:
        zone.__reduce__()
    except Exception:  # noqa: BLE001 - pickle defines what it raises, and this package does not import pickle
        return False
    return True


def _fraction_parts(value: fractions.Fraction, path: str) -> list[str]:
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


#: Encoders by exact type: they return the content of the tag after the type's name.
_ENCODERS: dict[type, Callable[[Encoder, Any, str, int], Sequence[Any]]] = {
    tuple: lambda encoder, value, path, depth: [encoder.items(value, path, depth)],
    set: lambda encoder, value, path, depth: [encoder.unordered(value, path, depth)],
    frozenset: lambda encoder, value, path, depth: [encoder.unordered(value, path, depth)],
    bytes: lambda _e, value, _p, _d: [inline(value)],
    bytearray: lambda _e, value, _p, _d: [inline(value)],
    complex: lambda _e, value, _p, _d: [struct.pack("<dd", value.real, value.imag).hex()],
    decimal.Decimal: lambda _e, value, _p, _d: [str(value)],
    fractions.Fraction: lambda _e, value, path, _d: _fraction_parts(value, path),
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


# Reading.


DecodeForeign = Callable[["Decoder", str, list[Any]], Any]

#: Maximum processor time for the keys of dicts and the items of sets in one value, in seconds. A worker can
#: choose keys that collide, so that each is compared with all others. Without collisions, a full message
#: takes half a second.
_HASHING_S = 5.0
#: Up to this many keys are always fast; beyond it, the time is checked after each batch of this size.
_FEW_KEYS = 64
#: Maximum number of keys with the same hash. Powers of two share 61 hashes.
_SAME_HASH_MAX = 1000


class Decoder:
    """Decoding of one value.

    foreign: Decodes a tag that does not belong to the standard library.
    whole: Returns the replacement of a preview.
    limit_bytes: For a worker's value: maximum memory of those frames and arrays that take more than their own bytes.
        Such a value may not contain a preview.
    """

    def __init__(
        self,
        buffers: Sequence[Any],
        foreign: DecodeForeign,
        whole: Callable[[Preview], Any] = lambda preview: preview,
        limit_bytes: int | None = None,
    ) -> None:
        self._buffers = buffers
        self._foreign = foreign
        self._whole = whole
        self._limit_bytes = limit_bytes
        self._left: float = math.inf if limit_bytes is None else limit_bytes
        self._left_s = math.inf if limit_bytes is None else _HASHING_S
        self._taken: set[int] = set()

    @property
    def spend(self) -> Callable[[int], None] | None:
        """Function that counts memory beyond a value's own bytes; None without a limit."""
        return None if self._limit_bytes is None else self.take

    def take(self, size: int) -> None:
        """Count memory. Raises `BadValue` above the limit."""
        self._left -= size
        if self._left < 0:
            raise BadValue(f"frames or arrays that would take more than {self._limit_bytes:,} bytes")

    def item(self, plain: object) -> Any:
        """Return the decoded item."""
        if type(plain) is list:
            return [self.item(item) for item in plain]
        if type(plain) is dict:
            if TAG in plain:
                return self._tagged(plain)
            return {key: self.item(item) for key, item in plain.items()}
        return plain

    def content(self, reference: object) -> Any:
        """Return the bytes for a reference: an index in the buffers, or base64 text."""
        if type(reference) is str:
            return base64.b64decode(reference, validate=True)
        if type(reference) is not int or not 0 <= reference < len(self._buffers):
            raise BadValue("a reference to contents that are not there")
        if reference in self._taken:  # otherwise a few bytes could be read many times
            raise BadValue("two references to the same contents")
        self._taken.add(reference)
        return self._buffers[reference]

    def each(self, items: Sequence[Any], *, keyed: bool = False) -> Iterator[Any]:
        """Yield items, or pairs of a key and a value, while the caller puts them into a hash table.

        Raises `BadValue` if that takes too long.
        """
        if len(items) <= _FEW_KEYS:
            yield from items
            return
        if self._limit_bytes is not None:
            same = collections.Counter(hash(item[0] if keyed else item) for item in items)
            if max(same.values()) > _SAME_HASH_MAX:
                raise BadValue("keys or items of sets that are made to collide")
        for start in range(0, len(items), _FEW_KEYS):
            began = time.thread_time()
            yield from items[start : start + _FEW_KEYS]
            self._left_s -= time.thread_time() - began
            if self._left_s < 0:
                raise BadValue("keys or items of sets that take too long to be told apart")

    def preview(self, shown: object, number: object = 0) -> Any:
        """Return the replacement of a preview."""
        if self._limit_bytes is not None:
            raise BadValue("a preview where a value was expected")
        return self._whole(_preview(shown, number))

    def _tagged(self, plain: dict[str, Any]) -> Any:
        tag = plain[TAG]
        if len(plain) != 1 or type(tag) is not list or not tag or type(tag[0]) is not str:
            raise BadValue("a tag of the wrong form")
        name, *rest = tag
        decoder = _DECODERS.get(name)
        if decoder is not None:
            return decoder(self, *rest)
        return self._foreign(self, name, rest)


def _preview(shown: Any, number: Any) -> Preview:
    """Return a record's preview. Raises `BadValue` for one of the wrong form."""
    shape, name = (shown.get("shape"), shown.get("type")) if type(shown) is dict else (None, None)
    if (
        type(shape) is not list
        or not all(type(size) is int and size >= 0 for size in shape)
        or type(name) is not str
        or type(number) is not int
    ):
        raise BadValue("a preview of the wrong form")
    return Preview(shown, number)


def zone_of(*rest: Any) -> datetime.tzinfo | None:
    """Return the time zone from the parts that `zone_parts` returned."""
    if not rest:
        return None
    if type(rest[0]) is str:
        return zoneinfo.ZoneInfo(rest[0])
    return datetime.timezone(datetime.timedelta(*rest[0]), *rest[1:])


def _moment_of(kind: Any) -> Callable[..., Any]:
    def build(_: Decoder, text: str, fold: int, zone: list[Any]) -> Any:
        return kind.fromisoformat(text).replace(tzinfo=zone_of(*zone), fold=fold)

    return build


def _dict_of(kind: Callable[[], Any]) -> Callable[..., Any]:
    """Return a decoder that fills a mapping pair by pair, since the constructor of a Counter counts its argument."""

    def build(decoder: Decoder, pairs: Any) -> Any:
        mapping = kind()
        entries = [(decoder.item(key), decoder.item(value)) for key, value in pairs]
        for key, value in decoder.each(entries, keyed=True):
            mapping[key] = value
        if len(mapping) != len(pairs):
            raise BadValue("a mapping with the same key twice")
        return mapping

    return build


def _set_of(kind: type) -> Callable[..., Any]:
    def build(decoder: Decoder, items: Any) -> Any:
        result = kind(decoder.each([decoder.item(item) for item in items]))
        if len(result) != len(items):
            raise BadValue("a set with the same item twice")
        return result

    return build


def _fraction_of(_: Decoder, above: str, below: str) -> fractions.Fraction:
    numbers = int(above, 16), int(below, 16)
    if max(number.bit_length() for number in numbers) > FRACTION_BITS:
        raise BadValue("a Fraction of too large numbers")
    return fractions.Fraction(*numbers)


_DECODERS: dict[str, Callable[..., Any]] = {
    "int": lambda _, digits: int(digits, 16),
    "float": lambda _, digits: struct.unpack("<d", bytes.fromhex(digits))[0],
    "str": lambda _, text: base64.b64decode(text, validate=True).decode(errors="surrogatepass"),
    "dict": _dict_of(dict),
    "tuple": lambda decoder, items: tuple(decoder.item(item) for item in items),
    "set": _set_of(set),
    "frozenset": _set_of(frozenset),
    "bytes": lambda _, text: base64.b64decode(text, validate=True),
    "bytearray": lambda _, text: bytearray(base64.b64decode(text, validate=True)),
    "complex": lambda _, digits: complex(*struct.unpack("<dd", bytes.fromhex(digits))),
    "Decimal": lambda _, text: decimal.Decimal(text),
    "Fraction": _fraction_of,
    "range": lambda _, start, stop, step: range(int(start, 16), int(stop, 16), int(step, 16)),
    "slice": lambda decoder, *parts: slice(*(decoder.item(part) for part in parts)),
    "date": lambda _, text: datetime.date.fromisoformat(text),
    "time": _moment_of(datetime.time),
    "datetime": _moment_of(datetime.datetime),
    "timedelta": lambda _, days, seconds, microseconds: datetime.timedelta(days, seconds, microseconds),
    "zone": lambda _, *rest: zone_of(*rest),
    "UUID": lambda _, digits: uuid.UUID(hex=digits),
    "ellipsis": lambda _: ...,
    "preview": Decoder.preview,
    "path": lambda decoder, kind, text: PATHS[kind](decoder.item(text)),
    "OrderedDict": _dict_of(collections.OrderedDict),
    "Counter": _dict_of(collections.Counter),
    "defaultdict": lambda decoder, pairs, factory: _dict_of(
        lambda: collections.defaultdict(None if factory is None else FACTORIES[factory])
    )(decoder, pairs),
    "deque": lambda decoder, items, longest: collections.deque((decoder.item(item) for item in items), longest),
}  # fmt: skip
