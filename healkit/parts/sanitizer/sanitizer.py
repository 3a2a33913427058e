"""Sanitiser service: any value as clean JSON data.

Secrets are redacted first and the value is cut afterwards, because half a secret matches no rule. So a long value is
read well beyond its limit, and the rest is dropped unread.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from healkit.config import Config
from healkit.core.secrets.cleaner import Cleaned, cut, size_of
from healkit.core.wire.encoding import int_text, to_jsonable, type_only
from healkit.errors import RulesInvalid
from healkit.parts.sanitizer.matcher import Hidden, KnownValues, Matcher, Traversal
from healkit.parts.sanitizer.personal_data import PERSONAL_DATA, PhoneRules
from healkit.parts.sanitizer.private_keys import KEY_SYNTAXES
from healkit.parts.sanitizer.rule import SanitizerRule
from healkit.parts.sanitizer.syntaxes import CODE_SYNTAXES, COMMAND_SYNTAXES, SECRET_SYNTAXES
from healkit.parts.sanitizer.tokens import CLOUD_TOKENS, CODE_TOKENS, OTHER_TOKENS, SERVICE_TOKENS

#: How much of a long value is read: several times its limit, since hiding makes it shorter.
_READ_TIMES, _READ_BYTES = 4, 64 * 1024
_MAX_ROUNDS = 4


#: Bytes of one character in JSON, at most.
_JSON_CHARS = 6


class Sanitizer:
    """Cleaner that hides secrets and personal data; several threads may share one.

    phone_region: ISO 3166 code of the country for phone numbers without a country code.
    limit_bytes: Default limit of `clean`.
    rules: Custom rules, tried like the built-in ones.
    allow: Regular expressions; a text that one of them matches completely is never hidden.

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
        self.personal_rules = frozenset(
            rule.id for rule in (*PERSONAL_DATA, *PhoneRules(phone_region).rules())
        )
        self._matcher = (
            Matcher((*rules_for(phone_region), *rules), compiled_allow(allow))
            if rules or allow
            else _standard(phone_region)
        )
        #: Returns True for a short text in which nothing can be hidden; most texts are.
        self.is_plain = self._matcher.is_plain

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

        known: Values that were hidden earlier in the same record are hidden here too; new ones are added.
        """
        hidden = Hidden(known)
        cleaned = self._matcher.text(text, hidden)
        if hidden.known.rules:
            cleaned = hidden.known.hide(cleaned, hidden)
        return Cleaned(cleaned, dict(hidden))

    def of_record(self) -> RecordSanitizer:
        """Return a cleaner for the parts of one record; a value hidden in one part is hidden in all later ones."""
        return RecordSanitizer(self)

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """Return the spans to hide in a text as (start, end, rule id), in order and without overlaps."""
        return [(span.start, span.end, span.rule.id) for span in self._matcher.find(text)]

    def clean(
        self, value: object, *, limit_bytes: int | None = None, known: KnownValues | None = None
    ) -> Cleaned:
        """Return any value as plain JSON data, with everything hidden, cut at the limit; never raise.

        Values that JSON cannot represent are converted by `healkit.core.wire.encoding`. Of a value that cannot be read
        at all, only the type's name is returned. `known`: as for `text`.
        """
        limit = self._limit_bytes if limit_bytes is None else limit_bytes
        is_short = type(value) is str and len(value) * _JSON_CHARS < limit
        if is_short and (known is None or not known.rules) and self.is_plain(str(value)):
            return Cleaned(value, {})
        try:
            return self._clean(value, limit, known)
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
        if walk.hidden.known.rules:
            cleaned = walk.hidden.known.hide_in(cleaned, walk.hidden)
        for _ in range(_MAX_ROUNDS):  # a cut may leave a text that matches a rule
            shorter = cut(cleaned, limit_bytes)
            if shorter is cleaned:
                break
            again = Traversal(self._matcher, cut=True, known=walk.hidden.known)
            rechecked = again.value(shorter)
            if not again.hidden:
                cleaned = shorter
                break
            walk.hidden.update(again.hidden)
            cleaned = rechecked
        return Cleaned(cleaned, dict(walk.hidden), size if size > limit_bytes else None)


class RecordSanitizer:
    """Cleaner for the parts of one record; a value hidden in one part is hidden in all.

    `again` hides values in earlier parts that a later part revealed.
    """

    def __init__(self, sanitizer: Sanitizer) -> None:
        self._sanitizer = sanitizer
        self._known = KnownValues()
        self.rule_set_version, self.custom_rules = sanitizer.rule_set_version, sanitizer.custom_rules
        self.personal_rules = sanitizer.personal_rules

    def clean(self, value: object, *, limit_bytes: int | None = None) -> Cleaned:
        """Return any value as plain JSON data, as `Sanitizer.clean` does."""
        return self._sanitizer.clean(value, limit_bytes=limit_bytes, known=self._known)

    def text(self, text: str) -> Cleaned:
        """Return a text with everything hidden and nothing cut."""
        return self._sanitizer.text(text, self._known)

    @property
    def has_hidden(self) -> bool:
        """Return whether it has learned a value that `again` would hide."""
        return bool(self._known.rules)

    def texts(self, texts: Iterable[str]) -> dict[str, str]:
        """Return the cleaned texts; a value hidden in one is hidden in all of them."""
        is_plain = self._sanitizer.is_plain
        cleaned = {text: text if is_plain(text) else str(self.text(text).value) for text in texts}
        return (
            {text: self.again(cleaned_text) for text, cleaned_text in cleaned.items()}
            if self._known.rules
            else cleaned
        )

    def again(self, value: object) -> Any:
        """Return a cleaned value without values that were hidden since."""
        return self._known.hide_in(value, Counter()) if self._known.rules else value

    def of_record(self) -> RecordSanitizer:
        """Return itself: it already belongs to a record."""
        return self


def narrowed(value: object) -> Any:
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
    """Hash the built-in rules of a region, without the content of their functions."""
    digest = hashlib.sha256(phone_region.encode())
    for rule in rules_for(phone_region):
        digest.update(repr((rule.id, rule.keywords, rule.pattern, rule.shown)).encode())
    return f"sha256:{digest.hexdigest()[:16]}"


def sanitize(value: object) -> tuple[Any, dict[str, int]]:
    """Return the value without secrets and personal data, and how often each rule hid something.

    Configured by the environment; a value longer than `payload_max_bytes` is cut.

    Example:
    >>> healkit.sanitize({"user": "ada@example.com", "password": "hunter2"})
    ({'user': '[EMAIL]', 'password': '[REDACTED:secret-name]'}, {'email': 1, 'secret-name': 1})
    """
    cleaned = configured(Config.from_environment()).clean(value)
    return cleaned.value, dict(cleaned.hidden)


@lru_cache(maxsize=4)
def configured(config: Config) -> Sanitizer:
    """Return the sanitiser of a configuration, made once."""
    return Sanitizer.from_config(config)


# Built-in rules, in the order of the documentation.


#: Headings of the documentation's table, and the rules below each.
SECTIONS: tuple[tuple[str, tuple[SanitizerRule, ...]], ...] = (
    ("Secrets by their name or place", (*SECRET_SYNTAXES, *CODE_SYNTAXES, *COMMAND_SYNTAXES, *KEY_SYNTAXES)),
    ("Cloud, infrastructure and monitoring", CLOUD_TOKENS),
    ("Code hosts, registries, builds and models", CODE_TOKENS),
    ("Payment, messaging, commerce and office", SERVICE_TOKENS),
    ("Other services, by their prefix", OTHER_TOKENS),
    ("Personal data", PERSONAL_DATA),
)


def rules_for(phone_region: str) -> tuple[SanitizerRule, ...]:
    """Return every rule; `phone_region` (an ISO 3166 code such as `US`) says how local phone numbers are written."""
    tables = tuple(rule for _, rules in SECTIONS for rule in rules)
    return tables + PhoneRules(phone_region).rules()


def as_markdown() -> str:
    """Return the table of docs/sanitizing_rules.md: each rule's id, what it hides, and its replacement."""
    parts: list[str] = []
    for heading, rules in SECTIONS:
        section_rules = rules + (PhoneRules("US").rules() if rules is PERSONAL_DATA else ())
        parts.append(f"## {heading}\n\n| counted as | what is hidden | shown as |\n| --- | --- | --- |\n")
        parts.extend(f"| `{rule.id}` | {rule.what} | `{rule.shown}` |\n" for rule in section_rules)
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"


# Custom rules: a file with rows like the built-in table's.
#
# Each row is tested when it is loaded. A rule that misses one of its own `caught` examples, or takes one of its
# `survives`, is refused with its id and place. Patterns run on google-re2 where that is installed (`healkit[speed]`):
# it takes linear time for every pattern. Otherwise they run on Python's `re`.


_FIELDS = {
    "id": str,
    "what": str,
    "pattern": str,
    "keywords": list,
    "replacement": str,
    "caught": list,
    "survives": list,
}
_ID = re.compile(r"[a-z][a-z0-9-]{0,62}\Z")


def load_rules(path: str | Path) -> tuple[SanitizerRule, ...]:
    """Read the rules of a file; raise `RulesInvalid` with the rule's id, or number, and the fault."""
    place = Path(path).expanduser()
    try:
        text = place.read_text()
        data = json.loads(text) if place.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise RulesInvalid(
            f"The sanitiser's rules {str(path)!r} cannot be read: {error.strerror}.",
            hint="Set sanitizer_rules to a TOML or JSON file that exists.",
        ) from error
    except ValueError as error:  # both readers' errors name line and column
        raise RulesInvalid(
            f"The sanitiser's rules {str(path)!r} do not parse: {error}.", hint=_FORM
        ) from error
    rows = data.get("rule", []) if isinstance(data, dict) else data
    if not isinstance(rows, list) or not rows:
        raise RulesInvalid(f"The sanitiser's rules {str(path)!r} contain no rule.", hint=_FORM)
    rules = tuple(_rule(row, f"rule {number} of {str(path)!r}") for number, row in enumerate(rows, 1))
    rule_ids: set[str] = set()
    for rule in rules:
        if rule.id in rule_ids:
            raise RulesInvalid(
                f"Two rules of {str(path)!r} are called {rule.id!r}.", hint="Give each rule its own id."
            )
        rule_ids.add(rule.id)
    return rules


_FORM = "Write [[rule]] tables with id, what and pattern; keywords, replacement, caught and survives are optional."


def _rule(row: object, place: str) -> SanitizerRule:
    """Build the rule of one row and try its examples."""
    if not isinstance(row, dict):
        raise RulesInvalid(f"{place} is a {type(row).__name__}, not a table.", hint=_FORM)
    where = f"{place} ({row['id']!r})" if "id" in row else place
    for name, value in row.items():
        wanted = _FIELDS.get(name)
        if wanted is None:
            raise RulesInvalid(
                f"{where} has an unknown field {name!r}.", hint=f"The fields are {', '.join(_FIELDS)}."
            )
        if not isinstance(value, wanted) or (
            wanted is list and not all(isinstance(item, str) and item for item in value)
        ):
            kind = "a list of strings" if wanted is list else "a text"
            raise RulesInvalid(f"{where}: {name}={value!r} is not {kind}.", hint=_FORM)
    for name in ("id", "pattern"):
        if not row.get(name):
            raise RulesInvalid(f"{where} has no {name}.", hint=_FORM)
    if not _ID.match(row["id"]):
        raise RulesInvalid(
            f"{where}: id={row['id']!r} must be lower-case words joined by dashes.",
            hint="For example: acme-token.",
        )
    compiled_pattern(row["pattern"], where)
    rule = SanitizerRule(
        str(row["id"]),
        str(row.get("what", row["id"])),
        "place",
        keywords=tuple(word.lower() for word in row.get("keywords", ())),
        pattern=row["pattern"],
        replacement=row.get("replacement", ""),
        caught=tuple(row.get("caught", ())),
        survives=tuple(row.get("survives", ())),
        custom=True,
    )
    _prove(rule, where)
    return rule


def _prove(rule: SanitizerRule, where: str) -> None:
    matcher = Matcher((rule,))
    for text in rule.caught:
        if not matcher.find(text):
            raise RulesInvalid(
                f"{where} does not catch its own example {text!r}.",
                hint="If the rule has keywords, the text must contain one of them.",
            )
    for text in (*rule.survives, ""):
        if matcher.find(text) or (not text and re.match(rule.pattern, "")):
            raise RulesInvalid(f"{where} hides {text!r}, which must stay.", hint="Make its pattern narrower.")


def compiled_pattern(pattern: str, where: str) -> re.Pattern[str]:
    """Compile a pattern for `re`; raise `RulesInvalid` with the position of the fault."""
    try:
        return re.compile(pattern)
    except re.error as error:
        position = f" at position {error.pos}" if error.pos is not None else ""
        raise RulesInvalid(
            f"{where}: pattern {pattern!r} is not a regular expression: {error.msg}{position}.",
            hint="Patterns are Python's; in TOML, write them in single quotes.",
        ) from error


def compiled_allow(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Compile the allow-list; raise `RulesInvalid` for an entry that is not a regular expression."""
    return tuple(
        compiled_pattern(pattern, f"sanitizer_allow[{place}]") for place, pattern in enumerate(patterns)
    )


# A round trip.
#
# Some text leaves this machine and comes back: a tool's code goes to a model, which returns it changed. A plain
# replacement would come back in the place of an address, or of a key that should not be there. So each hidden text
# gets a mark of its own, and the mark is replaced by the text again in the answer. Arguments and messages need no way
# back: what is hidden in them is dropped.


#: A shorter text that was hidden once may be a common word elsewhere.
_KNOWN_MIN_CHARS = 8

_encode = msgspec.json.Encoder(order="deterministic").encode


class SecretMap:
    """Hides texts behind marks and restores them; one is made for each case. `hidden` counts the texts by rule."""

    def __init__(self, sanitizer: Sanitizer, hidden: Counter[str] | None = None) -> None:
        self._sanitizer = sanitizer
        self._marks: dict[str, str] = {}
        self.hidden: Counter[str] = Counter() if hidden is None else hidden

    def text(self, text: str) -> str:
        """Return the text with marks for everything that is hidden in it, now or in an earlier text."""
        for original, mark in self._marks.items():
            if len(original) >= _KNOWN_MIN_CHARS and original in text:
                self.hidden[_rule_of(mark)] += text.count(original)
                text = text.replace(original, mark)
        for _ in range(_MAX_ROUNDS):
            spans = self._sanitizer.spans(text)
            if not spans:
                break
            parts: list[str] = []
            position = 0
            for start, end, rule in spans:
                parts += (text[position:start], self._mark(text[start:end], rule))
                position = end
                self.hidden[rule] += 1
            text = "".join((*parts, text[position:]))
        return text

    def value(self, value: object, limit_bytes: int) -> str:
        """Return a value as JSON text, cleaned as data (also by its keys) and then cut at the limit."""
        cleaned = self._sanitizer.clean(value, limit_bytes=limit_bytes)
        self.hidden.update(cleaned.hidden)
        return self.text(_encode(cleaned.value).decode())

    def cleaned(self, text: str) -> str:
        """Return the text with everything hidden permanently, without own marks."""
        cleaned = self._sanitizer.clean(text, limit_bytes=len(text.encode()) * 4)
        self.hidden.update(cleaned.hidden)
        return self.text(str(cleaned.value))

    def restored(self, text: str) -> str:
        """Return the text with the marks replaced by the original texts."""
        for original, mark in reversed(self._marks.items()):  # a later one may hold an earlier one's mark
            text = text.replace(mark, original)
        return text

    def numbered(self, code: str) -> str:
        """Return the code hidden, with each line's number in the original: a hidden text may span several lines."""
        lines: list[str] = []
        number = 1
        for line in self.text(code).replace("\r\n", "\n").removesuffix("\n").split("\n"):
            lines.append(f"{number:>4} | {line}")
            number += 1 + self.restored(line).count("\n")
        return "\n".join(lines)

    def _mark(self, original: str, rule: str) -> str:
        """Return the mark of a text; it looks like the sanitiser's own replacements, which are never hidden again."""
        if original not in self._marks:
            self._marks[original] = f"[REDACTED:{rule}-{len(self._marks) + 1}]"
        return self._marks[original]


def _rule_of(mark: str) -> str:
    return mark.removeprefix("[REDACTED:").rpartition("-")[0]


def cut_text(text: str, max_chars: int) -> str:
    """Cut the middle out of a long text, and say how much is left out; for texts that are already clean."""
    if len(text) <= max_chars:
        return text
    head, tail = max_chars * 2 // 3, max_chars // 3
    return f"{text[:head]} … ({len(text) - head - tail:,} characters left out) … {text[-tail:]}"
