"""Decoder of tagged values.

Everything in a tag is checked, since it may come from a worker. Where it does, the value has a limit: what it takes in
memory beyond its own bytes, and the time that its keys and items may take to be told apart.
"""

from __future__ import annotations

import base64
import collections
import datetime
import decimal
import fractions
import math
import struct
import time
import uuid
import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from healkit.contracts.encoding import TAG, Preview
from healkit.values.plain import FACTORIES, FRACTION_BITS, PATHS, BadValue

DecodeForeign = Callable[["Decoder", str, list[Any]], Any]

#: Processor time for the keys of dicts and the items of sets of one value. Those of a worker can be chosen to collide,
#: so that each is compared with all others; without that, as many as a message can hold take half a second.
_HASHING_S = 5.0
#: Up to this many keys cannot take long; of more, the time is looked at after each so many.
_FEW_KEYS = 64
#: How many keys may have one hash. Powers of two share 61 of them.
_SAME_HASH_MAX = 1000


class Decoder:
    """Decoding of one value.

    `foreign` decodes a tag whose name is none of the standard library's; `whole` returns what stands for a preview.
    `limit_bytes` is for a worker's value: how much its frames and arrays may take, those of them counted that take more
    than their own bytes. Such a value holds no preview.
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
        """Counter of memory beside a value's own bytes, for a worker's value."""
        return None if self._limit_bytes is None else self.take

    def take(self, size: int) -> None:
        """Count memory. Raises `BadValue` beyond the limit."""
        self._left -= size
        if self._left < 0:
            raise BadValue(f"frames or arrays that would take more than {self._limit_bytes:,} bytes")

    def item(self, plain: Any) -> Any:
        """Return the value of an item."""
        if type(plain) is list:
            return [self.item(item) for item in plain]
        if type(plain) is dict:
            if TAG in plain:
                return self._tagged(plain)
            return {key: self.item(item) for key, item in plain.items()}
        return plain

    def content(self, reference: Any) -> Any:
        """Return the bytes that a number or a base64 text stands for."""
        if type(reference) is str:
            return base64.b64decode(reference, validate=True)
        if type(reference) is not int or not 0 <= reference < len(self._buffers):
            raise BadValue("a reference to contents that are not there")
        if reference in self._taken:  # or a few bytes would be read any number of times
            raise BadValue("two references to the same contents")
        self._taken.add(reference)
        return self._buffers[reference]

    def each(self, items: Sequence[Any], *, keyed: bool = False) -> Iterator[Any]:
        """Yield items, or pairs of a key and a value, that are put into a hash table meanwhile.

        Raises `BadValue` where that takes too long.
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

    def preview(self, shown: Any, number: Any = 0) -> Any:
        """Return what stands for a preview."""
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
    """Return a record's preview. Raises `BadValue` for one that `previews` has not made."""
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
    """Return the time zone that `encoder.zone_parts` has written."""
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
    """Return what builds a mapping from its pairs: one by one, since a Counter counts what it is built from."""

    def build(decoder: Decoder, pairs: Any) -> Any:
        made = kind()
        found = [(decoder.item(key), decoder.item(value)) for key, value in pairs]
        for key, value in decoder.each(found, keyed=True):
            made[key] = value
        if len(made) != len(pairs):
            raise BadValue("a mapping with the same key twice")
        return made

    return build


def _set_of(kind: type) -> Callable[..., Any]:
    def build(decoder: Decoder, items: Any) -> Any:
        made = kind(decoder.each([decoder.item(item) for item in items]))
        if len(made) != len(items):
            raise BadValue("a set with the same item twice")
        return made

    return build


def _fraction(_: Decoder, above: str, below: str) -> fractions.Fraction:
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
    "Fraction": _fraction,
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
