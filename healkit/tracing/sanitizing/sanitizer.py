"""The sanitiser: what of a value may be kept.

Redact first, then cut: a secret cut in half matches no rule. So a long value is looked at well beyond its limit, and
what lies farther than that is dropped unseen.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from healkit.config import Config
from healkit.contracts.encoding import to_jsonable, type_only
from healkit.tracing.sanitizing.catalogue import rules_for
from healkit.tracing.sanitizing.custom import compiled_allow, load_rules
from healkit.tracing.sanitizing.engine import Engine
from healkit.tracing.sanitizing.rule import Rule
from healkit.tracing.sanitizing.sizes import cut, size_of
from healkit.tracing.sanitizing.walk import Walk

#: How much of a long value is looked at: its limit several times over, since hiding makes it shorter.
_LOOKED_AT_TIMES, _LOOKED_AT_BYTES = 4, 64 * 1024
_MAX_ROUNDS = 4


@dataclasses.dataclass(frozen=True)
class Clean:
    """A cleaned value.

    value: plain JSON data. hidden: how often each rule hid something, by rule id. truncated_from: the value's size in
    bytes before it was cut, None where it was not.
    """

    value: Any
    hidden: dict[str, int]
    truncated_from: int | None = None


class Sanitizer:
    """Hides secrets and personal data; one may be used by several threads.

    phone_region: whose phone numbers are meant where no country code is given, as an ISO 3166 code.
    limit_bytes: what `clean` cuts at by default. rules: custom rules, tried like the built-in ones.
    allow: regular expressions; what one of them matches as a whole is never hidden.
    Raises `RulesInvalid` for patterns that cannot be compiled.
    """

    def __init__(
        self,
        *,
        phone_region: str = "US",
        limit_bytes: int = 10_240,
        rules: Sequence[Rule] = (),
        allow: Sequence[str] = (),
    ) -> None:
        self._limit_bytes = limit_bytes
        self._engine = (
            Engine((*rules_for(phone_region), *rules), compiled_allow(allow))
            if rules or allow
            else _standard(phone_region)
        )

    @classmethod
    def from_config(cls, config: Config) -> Sanitizer:
        """As configured; raises `RulesInvalid` when the file of custom rules, or an allowed pattern, is not one."""
        rules = load_rules(config.sanitizer_rules) if config.sanitizer_rules else ()
        return cls(
            phone_region=config.phone_region,
            limit_bytes=config.payload_max_bytes,
            rules=rules,
            allow=config.sanitizer_allow,
        )

    def text(self, text: str) -> Clean:
        """A text with everything hidden and nothing cut."""
        hidden: Counter[str] = Counter()
        return Clean(self._engine.text(text, hidden), dict(hidden))

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """What would be hidden in a text: (start, end, rule id), in order and without overlaps."""
        return [(found.start, found.end, found.rule.id) for found in self._engine.find(text)]

    def clean(self, value: object, *, limit_bytes: int | None = None) -> Clean:
        """Any value as plain JSON data, with everything hidden, cut at the limit; never raises.

        What JSON cannot hold is converted as `healkit.contracts.encoding` does. A value that cannot be read at all is
        named by its type only.
        """
        try:
            return self._clean(value, self._limit_bytes if limit_bytes is None else limit_bytes)
        except Exception:  # noqa: BLE001 - what cannot be cleaned is not kept, and losing a trace over it would be worse
            return Clean(type_only(value), {"unreadable": 1})

    def _clean(self, value: object, limit_bytes: int) -> Clean:
        plain, _ = to_jsonable(value)
        try:
            size = size_of(plain)
        except (OverflowError, ValueError):  # an integer of more digits than Python writes
            plain = narrowed(plain)
            size = size_of(plain)
        looked_at = limit_bytes * _LOOKED_AT_TIMES + _LOOKED_AT_BYTES
        if size > looked_at:
            plain = cut(plain, looked_at)
        walk = Walk(self._engine)
        cleaned = walk.value(plain)
        for _ in range(_MAX_ROUNDS):  # a cut may leave what a rule takes for something: until nothing changes
            shorter = cut(cleaned, limit_bytes)
            if shorter is cleaned:
                break
            again = Walk(self._engine)
            seen = again.value(shorter)
            if not again.hidden:
                cleaned = shorter
                break
            walk.hidden.update(again.hidden)
            cleaned = seen
        return Clean(cleaned, dict(walk.hidden), size if size > limit_bytes else None)


def narrowed(value: Any) -> Any:
    """The value with integers of more than 64 bits, which many JSON readers refuse, as text."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return str(value) if value.bit_length() <= 4096 else f"<integer of {value.bit_length()} bits>"
    if isinstance(value, list):
        return [narrowed(item) for item in value]
    if isinstance(value, dict):
        return {key: narrowed(item) for key, item in value.items()}
    return value


@lru_cache(maxsize=8)
def _standard(phone_region: str) -> Engine:
    """The built-in rules; compiled once for each region."""
    return Engine(rules_for(phone_region))


def sanitize(value: object) -> tuple[Any, dict[str, int]]:
    """The value without secrets and personal data, and how often each rule hid something.

    As configured by the environment; a value longer than `payload_max_bytes` is cut.
    """
    cleaned = _configured(Config.from_environment()).clean(value)
    return cleaned.value, cleaned.hidden


@lru_cache(maxsize=4)
def _configured(config: Config) -> Sanitizer:
    return Sanitizer.from_config(config)
