"""Sanitiser service: any value as clean JSON data.

Secrets are redacted first and the value is cut after: half a secret matches no rule. So a long value is read well
beyond its limit, and the rest is dropped unread.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from healkit.config import Config
from healkit.contracts.encoding import int_text, to_jsonable, type_only
from healkit.sanitizer.cleaner import Cleaned
from healkit.sanitizer.custom_rules import compiled_allow, load_rules
from healkit.sanitizer.known_values import Hidden, KnownValues
from healkit.sanitizer.matcher import Matcher
from healkit.sanitizer.rule import SanitizerRule
from healkit.sanitizer.tables import rules_for
from healkit.sanitizer.traversal import Traversal
from healkit.sanitizer.truncation import cut, size_of

#: How much of a long value is read: several times its limit, since hiding makes it shorter.
_READ_TIMES, _READ_BYTES = 4, 64 * 1024
_MAX_ROUNDS = 4


class Sanitizer:
    """Cleaner that hides secrets and personal data; several threads may share one.

    phone_region: ISO 3166 code of the country whose phone numbers are meant where no country code is given.
    limit_bytes: default limit of `clean`. rules: custom rules, tried like the built-in ones.
    allow: regular expressions; a text that one of them matches as a whole is never hidden.
    Raises `RulesInvalid` for patterns that cannot be compiled.
    """

    def __init__(
        self,
        *,
        phone_region: str = "US",
        limit_bytes: int = 10_240,
        rules: Sequence[SanitizerRule] = (),
        allow: Sequence[str] = (),
    ) -> None:
        self._limit_bytes = limit_bytes
        self._phone_region = phone_region
        self.custom_rules = tuple(rule.id for rule in rules)
        self._matcher = (
            Matcher((*rules_for(phone_region), *rules), compiled_allow(allow))
            if rules or allow
            else _standard(phone_region)
        )

    @classmethod
    def from_config(cls, config: Config) -> Sanitizer:
        """Build the configured sanitiser; raise `RulesInvalid` for bad custom rules or allowed patterns."""
        rules = load_rules(config.sanitizer_rules) if config.sanitizer_rules else ()
        return cls(
            phone_region=config.phone_region,
            limit_bytes=config.payload_max_bytes,
            rules=rules,
            allow=config.sanitizer_allow,
        )

    @property
    def rule_set_version(self) -> str:
        """Hash of the phone region and the built-in rules: their ids, keywords, patterns and replacements."""
        return _version(self._phone_region)

    def text(self, text: str, known: KnownValues | None = None) -> Cleaned:
        """Return a text with everything hidden and nothing cut.

        known: what was hidden earlier in the same record, hidden here too; what is hidden here is added.
        """
        hidden = Hidden(known)
        cleaned = self._matcher.text(text, hidden)
        if hidden.known:
            cleaned = hidden.known.hide(cleaned, hidden)
        return Cleaned(cleaned, dict(hidden))

    def of_record(self) -> RecordCleaner:
        """Return a cleaner for the parts of one record: what it hides in one, it hides in all that follow."""
        return RecordCleaner(self)

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """Return the spans to hide in a text as (start, end, rule id), in order and without overlaps."""
        return [(found.start, found.end, found.rule.id) for found in self._matcher.find(text)]

    def clean(
        self, value: object, *, limit_bytes: int | None = None, known: KnownValues | None = None
    ) -> Cleaned:
        """Return any value as plain JSON data, with everything hidden, cut at the limit; never raise.

        Values that JSON cannot hold are converted by `healkit.contracts.encoding`. Of a value that cannot be read at
        all, only the type's name is returned. `known`: as for `text`.
        """
        try:
            return self._clean(value, self._limit_bytes if limit_bytes is None else limit_bytes, known)
        except Exception:  # noqa: BLE001 - a value that cannot be cleaned is dropped, not the trace around it
            return Cleaned(type_only(value), {"unreadable": 1})

    def _clean(self, value: object, limit_bytes: int, known: KnownValues | None) -> Cleaned:
        plain, _ = to_jsonable(value)
        try:
            size = size_of(plain)
        except (OverflowError, ValueError):  # an integer of more digits than Python writes
            plain = narrowed(plain)
            size = size_of(plain)
        read_bytes = limit_bytes * _READ_TIMES + _READ_BYTES
        if size > read_bytes:
            plain = cut(plain, read_bytes)
        walk = Traversal(self._matcher, known=known)
        cleaned = walk.value(plain)
        if walk.hidden.known:
            cleaned = walk.hidden.known.hide_in(cleaned, walk.hidden)
        for _ in range(_MAX_ROUNDS):  # a cut may leave a text that matches a rule
            shorter = cut(cleaned, limit_bytes)
            if shorter is cleaned:
                break
            again = Traversal(self._matcher, cut=True, known=walk.hidden.known)
            seen = again.value(shorter)
            if not again.hidden:
                cleaned = shorter
                break
            walk.hidden.update(again.hidden)
            cleaned = seen
        return Cleaned(cleaned, dict(walk.hidden), size if size > limit_bytes else None)


class RecordCleaner:
    """Cleaner for the parts of one record; a value hidden in one part is hidden in all.

    What a later part teaches is hidden in the earlier ones by `again`.
    """

    def __init__(self, sanitizer: Sanitizer) -> None:
        self._sanitizer = sanitizer
        self._known = KnownValues()
        self.rule_set_version, self.custom_rules = sanitizer.rule_set_version, sanitizer.custom_rules

    def clean(self, value: object, *, limit_bytes: int | None = None) -> Cleaned:
        """Return any value as plain JSON data, as `Sanitizer.clean` does."""
        return self._sanitizer.clean(value, limit_bytes=limit_bytes, known=self._known)

    def text(self, text: str) -> Cleaned:
        """Return a text with everything hidden and nothing cut."""
        return self._sanitizer.text(text, self._known)

    def again(self, value: Any) -> Any:
        """Return a cleaned value without what was hidden since."""
        return self._known.hide_in(value, Counter()) if self._known else value

    def of_record(self) -> RecordCleaner:
        """Return itself: it belongs to a record already."""
        return self


def narrowed(value: Any) -> Any:
    """Return the value with integers of more than 64 bits, which many JSON readers refuse, as text."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return int_text(value)
    if isinstance(value, list):
        return [narrowed(item) for item in value]
    if isinstance(value, dict):
        return {key: narrowed(item) for key, item in value.items()}
    return value


@lru_cache(maxsize=8)
def _standard(phone_region: str) -> Matcher:
    """Compile the built-in rules, once for each region."""
    return Matcher(rules_for(phone_region))


@lru_cache(maxsize=8)
def _version(phone_region: str) -> str:
    """Hash the built-in rules of a region; what a rule's function does is not seen."""
    digest = hashlib.sha256(phone_region.encode())
    for rule in rules_for(phone_region):
        digest.update(repr((rule.id, rule.keywords, rule.pattern, rule.shown)).encode())
    return f"sha256:{digest.hexdigest()[:16]}"


def sanitize(value: object) -> tuple[Any, dict[str, int]]:
    """Return the value without secrets and personal data, and how often each rule hid something.

    Configured by the environment; a value longer than `payload_max_bytes` is cut.
    """
    cleaned = configured(Config.from_environment()).clean(value)
    return cleaned.value, dict(cleaned.hidden)


@lru_cache(maxsize=4)
def configured(config: Config) -> Sanitizer:
    """Return the sanitiser of a configuration, made once."""
    return Sanitizer.from_config(config)
