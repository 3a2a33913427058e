"""Decoder of tagged values.

Everything in a tag is checked, since it may come from a worker.
"""

from __future__ import annotations

import base64
import collections
import datetime
import decimal
import fractions
import struct
import uuid
import zoneinfo
from collections.abc import Callable, Sequence
from typing import Any

from healkit.contracts.encoding import TAG, Preview
from healkit.values.plain import FACTORIES, PATHS, BadValue

DecodeForeign = Callable[["Decoder", str, list[Any]], Any]


class Decoder:
    """Decoding of one value.

    `foreign` decodes a tag whose name is none of the standard library's; `whole` returns what stands for a preview.
    """

    def __init__(
        self,
        buffers: Sequence[Any],
        foreign: DecodeForeign,
        whole: Callable[[Preview], Any] = lambda preview: preview,
    ) -> None:
        self._buffers = buffers
        self._foreign = foreign
        self.whole = whole

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
        return self._buffers[reference]

    def _tagged(self, plain: dict[str, Any]) -> Any:
        tag = plain[TAG]
        if len(plain) != 1 or type(tag) is not list or not tag or type(tag[0]) is not str:
            raise BadValue("a tag of the wrong form")
        name, *rest = tag
        decoder = _DECODERS.get(name)
        if decoder is not None:
            return decoder(self, *rest)
        return self._foreign(self, name, rest)


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
        for key, value in pairs:
            made[decoder.item(key)] = decoder.item(value)
        if len(made) != len(pairs):
            raise BadValue("a mapping with the same key twice")
        return made

    return build


def _set_of(kind: type) -> Callable[..., Any]:
    def build(decoder: Decoder, items: Any) -> Any:
        made = kind(decoder.item(item) for item in items)
        if len(made) != len(items):
            raise BadValue("a set with the same item twice")
        return made

    return build


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
    "Fraction": lambda _, above, below: fractions.Fraction(int(above, 16), int(below, 16)),
    "range": lambda _, start, stop, step: range(int(start, 16), int(stop, 16), int(step, 16)),
    "slice": lambda decoder, *parts: slice(*(decoder.item(part) for part in parts)),
    "date": lambda _, text: datetime.date.fromisoformat(text),
    "time": _moment_of(datetime.time),
    "datetime": _moment_of(datetime.datetime),
    "timedelta": lambda _, days, seconds, microseconds: datetime.timedelta(days, seconds, microseconds),
    "zone": lambda _, *rest: zone_of(*rest),
    "UUID": lambda _, digits: uuid.UUID(hex=digits),
    "ellipsis": lambda _: ...,
    "preview": lambda decoder, shown, number=0: decoder.whole(Preview(shown, number)),
    "path": lambda decoder, kind, text: PATHS[kind](decoder.item(text)),
    "OrderedDict": _dict_of(collections.OrderedDict),
    "Counter": _dict_of(collections.Counter),
    "defaultdict": lambda decoder, pairs, factory: _dict_of(
        lambda: collections.defaultdict(None if factory is None else FACTORIES[factory])
    )(decoder, pairs),
    "deque": lambda decoder, items, longest: collections.deque((decoder.item(item) for item in items), longest),
}  # fmt: skip
