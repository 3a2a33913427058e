"""Cleaners, which hide secrets in payloads.

A cleaner turns a value into JSON data and removes secrets and personal data. `Sanitizer` is the usual one. `Verbatim`
hides nothing, for users who choose raw traces.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from healkit import hooks
from healkit.config import Config
from healkit.core.contracts.execution import CallRecord, DecisionRecord, Finished, Record, Started
from healkit.core.contracts.failure import Failure
from healkit.core.secrets.secret_names import Secrecy, secrecy_of
from healkit.core.wire.encoding import to_jsonable
from healkit.core.wire.record_text import shortened
from healkit.errors import ConfigError

#: Default size limit of one payload, in bytes of JSON.
PAYLOAD_MAX_BYTES = 10_240
#: A value up to this size is cleaned whole and then cut. A longer one is first cut at a word; cleaning it
#: whole would take seconds.
WHOLE_MAX_BYTES = 32_768


@dataclasses.dataclass(frozen=True)
class Cleaned:
    """A cleaned value.

    value: Plain JSON data.
    hidden: Number of hidden values by rule id.
    truncated_from: Size of the value before it was cut, in bytes; None if it was not cut.
    """

    value: Any
    hidden: Mapping[str, int]
    truncated_from: int | None = None


class Cleaner(Protocol):
    """Interface of a cleaner, which hides secrets and personal data in payloads, as `healkit.parts.sanitizer` does.

    rule_set_version: Hash of the built-in rules; None if there are none.
    custom_rules: Ids of the user's own rules.
    personal_rules: Ids of the rules for personal data, as opposed to secrets.
    """

    @property
    def rule_set_version(self) -> str | None: ...
    @property
    def custom_rules(self) -> tuple[str, ...]: ...
    @property
    def personal_rules(self) -> frozenset[str]: ...

    def clean(self, value: object, *, limit_bytes: int | None = None) -> Cleaned:
        """Return the value as cleaned JSON data, cut to the limit; never raise.

        Called for each payload before it is stored, sent or shown.
        """
        ...

    def text(self, text: str) -> Cleaned:
        """Return a cleaned text of full length."""
        ...

    def of_record(self) -> RecordCleaner:
        """Return a cleaner for the parts of one record: a value hidden in one part is also hidden in all later ones."""
        ...


class RecordCleaner(Cleaner, Protocol):
    """Cleaner for the parts of one record; a value hidden in one part is hidden in all."""

    @property
    def has_hidden(self) -> bool:
        """Return whether it has learned a value that `again` would hide."""
        ...

    def texts(self, texts: Iterable[str]) -> dict[str, str]:
        """Return each text with its cleaned form; a value hidden in one is hidden in all of them."""
        ...

    def again(self, value: object) -> Any:
        """Hide the values learned from later parts in a value that was cleaned before."""
        ...


class Verbatim:
    """Cleaner that hides nothing: it only converts values to JSON, and cuts them."""

    rule_set_version: str | None = None
    custom_rules: tuple[str, ...] = ()
    personal_rules: frozenset[str] = frozenset()
    has_hidden = False

    def text(self, text: str) -> Cleaned:
        """Return the text unchanged."""
        return Cleaned(text, {})

    def of_record(self) -> Verbatim:
        """Return itself, since it learns nothing."""
        return self

    def texts(self, texts: Iterable[str]) -> dict[str, str]:
        """Return each text unchanged."""
        return {text: text for text in texts}

    def again(self, value: object) -> Any:
        """Return the value unchanged."""
        return value

    def clean(self, value: object, *, limit_bytes: int | None = None) -> Cleaned:
        """Return the value as JSON data; a value that is too long becomes text, cut and marked."""
        plain, _ = to_jsonable(value)
        encoded = plain.encode() if isinstance(plain, str) else msgspec.json.encode(plain)
        limit = PAYLOAD_MAX_BYTES if limit_bytes is None else limit_bytes
        if len(encoded) <= limit:
            return Cleaned(plain, {})
        cut = encoded[: max(0, limit - len(MARKER))].decode(errors="ignore")
        return Cleaned(cut + MARKER, {}, len(encoded))


def clean_bounded(cleaner: Cleaner, value: object, max_bytes: int) -> Cleaned:
    """Clean a value to at most `max_bytes`; the time does not grow with the part that is cut off."""
    plain = value if isinstance(value, str) else to_jsonable(value)[0]
    encoded = (
        plain.encode(errors="backslashreplace") if isinstance(plain, str) else msgspec.json.encode(plain)
    )
    if len(encoded) <= max(max_bytes, WHOLE_MAX_BYTES):
        return cleaner.clean(plain, limit_bytes=max_bytes)
    head = encoded[: max_bytes - len(MARKER)].decode(errors="ignore")
    cleaned = cleaner.clean(whole_words(head), limit_bytes=2 * max_bytes)
    return Cleaned(f"{cleaned.value}{MARKER}", cleaned.hidden, len(encoded))


def sanitizer_of(config: Config) -> Cleaner:
    """Return the sanitiser of a configuration, made once, because the rules of `healkit.parts.sanitizer` load slowly.

    Raises `RulesInvalid` for bad custom rules. Raises `ConfigError` if stored or sent data must be clean and there is
    no cleaner.
    """
    cleaner: Cleaner | None = hooks.first("sanitizer", config=config)
    if cleaner is None and (config.sanitize_log or (config.sync_url and not config.trace_raw)):
        wanted = "sanitize_log is on" if config.sanitize_log else "Traces are sent"
        raise ConfigError(f"{wanted}, and no plug-in hides secrets: healkit.parts.sanitizer is missing.")
    return cleaner or Verbatim()


# Cleaning of the payloads in records and traces.
#
# A payload is data that a tool received, printed or returned. Ids, names of the contract, hashes, codes and times are
# not payload and are not changed.


#: If a payload is longer than the first number, only as many characters as the second are read. A trace keeps
#: 10 KB.
WHOLE_MAX_CHARS, HEAD_CHARS = 32_000, 12_000
#: No size limit: records of the log are cleaned, not cut.
UNLIMITED = 1 << 62

#: Any kind of record: a function that takes one kind returns the same kind.
AnyRecord = TypeVar("AnyRecord", bound=Record)

# Written by `records.summarize` in place of the rest of a text.
_CUT = re.compile(r"… \[TRUNCATED, ([\d,]+) characters\]\Z")

_encode = msgspec.json.Encoder().encode


def payload_of(text: str) -> tuple[Any, int | None]:
    """Return a record's text as JSON value, or as text if it was cut, and its size before the cut.

    A cut may be inside a secret, and no rule recognises half a secret. So the last word before a cut is dropped.
    """
    text = text if len(text) <= WHOLE_MAX_CHARS else shortened(text, HEAD_CHARS)
    cut = _CUT.search(text)
    if cut is not None:
        head = whole_words(text[: cut.start()])
        return f"{head}… [TRUNCATED] ({cut[1]} characters)", int(cut[1].replace(",", ""))
    try:
        return msgspec.json.decode(text), None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text, None


def cleaned_record(record: AnyRecord, cleaner: Cleaner) -> AnyRecord:
    """Return the record with cleaned payloads; its trace, if any, is already clean."""
    text = partial(_cleaned_text, cleaner)

    def json(value: str) -> str:
        if _CUT.search(value):
            return text(str(payload_of(value)[0]))
        try:
            decoded = msgspec.json.decode(value)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return text(value)
        return _encode(cleaner.clean(decoded, limit_bytes=UNLIMITED).value).decode()

    changes: dict[str, Any]
    match record:
        case Started():
            changes = {"arguments": json(record.arguments)}
        case CallRecord():
            summary = json(record.result_summary) if record.result_summary else ""
            changes = {"arguments": json(record.arguments), "result_summary": summary}
            changes["error"] = text(record.error)
        case DecisionRecord():
            changes = {name: text(getattr(record, name)) for name in ("node", "outcome", "condition")}
        case Finished():
            changes = {"last_output": text(record.last_output)}
            if record.result_summary is not None:
                changes["result_summary"] = json(record.result_summary)
            if record.failure is not None:
                changes["failure"] = cleaned_failure(record.failure, cleaner)
    return msgspec.structs.replace(record, **changes)


def secret_columns(cleaner: Cleaner, columns: Mapping[str, Sequence[Any]]) -> set[str]:
    """Return the names of the columns to hide, judged by name and sample values.

    A secret's name is enough, whatever the values look like.
    """
    return {
        name
        for name, some in columns.items()
        if cleaner.clean(
            {name: list(some)}, limit_bytes=UNLIMITED
        ).hidden  # first, so that a record's cleaner learns the values
        or secrecy_of(name) >= Secrecy.TOKEN
    }


def cleaned_failure(failure: Failure, cleaner: Cleaner) -> Failure:
    """Return the failure with all its texts cleaned, as pages show it."""
    cleaner = cleaner.of_record()
    failure = learn(failure, cleaner)
    text = partial(_cleaned_text, cleaner)
    stack = text(failure.traceback)  # first, because names in it help to recognise values in the message
    frames = [msgspec.structs.replace(frame, line=text(frame.line)) for frame in failure.frames]
    changes = {name: text(getattr(failure, name)) for name in ("evalue", "hint")}
    changes["traceback"] = cleaner.again(stack)
    linked = [cleaned_failure(linked_failure, cleaner) for linked_failure in failure.linked]
    return msgspec.structs.replace(cleaned_facts(failure, cleaner), frames=frames, linked=linked, **changes)


def learn(failure: Failure, cleaner: Cleaner) -> Failure:
    """Teach a record's cleaner the secrets of the failure's frames, and return the failure without them."""
    if not failure.secrets:
        return failure
    cleaner.clean(failure.named, limit_bytes=UNLIMITED)
    return msgspec.structs.replace(failure, secrets=[])


def cleaned_facts(failure: Failure, cleaner: Cleaner) -> Failure:
    """Return the failure with cleaned facts about live objects, which Python's own traceback does not show."""
    if failure.linked:
        failure = msgspec.structs.replace(
            failure, linked=[cleaned_facts(linked_failure, cleaner) for linked_failure in failure.linked]
        )
    if not failure.observed:
        return failure
    text = partial(_cleaned_text, cleaner)
    names = {name: [text(word) for word in getattr(failure, name)] for name in ("near", "known")}
    facts = {name: text(fact) for name, fact in failure.facts.items()}
    return msgspec.structs.replace(failure, **names, facts=facts)


def _cleaned_text(cleaner: Cleaner, value: str) -> str:
    return str(cleaner.clean(value, limit_bytes=UNLIMITED).value) if value else value


# Truncation of values to a size in bytes of JSON.
#
# A cut value keeps its structure: long texts and long lists lose their ends, and each cut states the original size. A
# cut is never inside a replacement or a word, because no rule recognises half a secret.


MARKER = "[TRUNCATED]"
#: A container gives one item at most this part (a half) of the remaining room, to leave some for the next
#: items.
_SHARE = 2
_LEAST_BYTES = 64
_MARKED = re.compile(r" ?… \[TRUNCATED\] \(([\d,]+) bytes\)\Z")
_HALF_REPLACEMENT = re.compile(r"\[[A-Za-z][\w:.-]{0,63}\Z")
_WORD_MAX_CHARS = 4096
#: Longer than the longest mark, the longest replacement and most words.
_NEAR_CHARS = 128
#: Default of `whole_words`. Text before a cut may be half a secret, which no rule recognises; no secret is
#: longer.
WORD_MAX_CHARS, _WORD_ENDS = 2048, re.compile(r"[\s\"',;&]")


def size_of(value: object) -> int:
    """Return the size in bytes: of a text in UTF-8, of any other value as JSON."""
    return len(value.encode()) if isinstance(value, str) else len(_encode(value))


def cut(value: object, limit_bytes: int) -> Any:
    """Return the value cut to at most `limit_bytes`, by `size_of`; the same object if it fits."""
    budget = limit_bytes
    for _ in range(8):
        size = size_of(value)
        if size <= limit_bytes:
            return value
        value = _text(value, budget, size) if isinstance(value, str) else _inside(value, budget)
        budget = budget * 3 // 4  # sizes of escapes and punctuation are estimates
    return MARKER[:limit_bytes]


def whole_words(head: str, longest: int = WORD_MAX_CHARS) -> str:
    """Drop the text's last word, or at most its last `longest` characters; the time depends only on those.

    A regular expression anchored at the end would try every position of a long word and take seconds.
    """
    start = max(0, len(head) - longest)
    for begin in (max(start, len(head) - _NEAR_CHARS), start):  # usually the last word is short
        ends = [match.end() for match in _WORD_ENDS.finditer(head, begin)]
        if ends:
            return head[: ends[-1]]
    return head[:start]


def _text(text: str, budget: int, size: int) -> str:
    """Return the beginning of a text, with its size in bytes before the first cut."""
    earlier = _MARKED.search(text, max(0, len(text) - _NEAR_CHARS))
    if earlier is not None:
        size = int(earlier[1].replace(",", ""))
        text = text[: earlier.start()]
    marker = f" … {MARKER} ({size:,} bytes)"
    room = max(0, budget - len(marker.encode()))
    head = text.encode()[:room].decode(errors="ignore")
    if len(head) < len(text):
        head = whole_words(head, _WORD_MAX_CHARS) or head[: len(head) // 2]
    half = _HALF_REPLACEMENT.search(head, max(0, len(head) - _NEAR_CHARS))
    return (head[: half.start()] if half else head).rstrip() + marker


def _inside(value: object, budget: int) -> Any:
    """Return a list or an object with its items cut to the available room; any other value unchanged."""
    if isinstance(value, dict):
        return _object(value, budget)
    if not isinstance(value, list):
        return value
    result: list[Any] = []
    remaining = budget - 2
    for position, item in enumerate(value):
        rest = len(value) - position
        if remaining < 2 * _LEAST_BYTES and rest > 1:
            result.append(f"{MARKER} {rest:,} more items")
            break
        fitted, size = _fitted(item, remaining if rest == 1 else max(_LEAST_BYTES, remaining // _SHARE))
        result.append(fitted)
        remaining -= size + 1
    return result


def _object(value: dict[str, Any], budget: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    remaining = budget - 2
    for position, (key, item) in enumerate(value.items()):
        rest = len(value) - position
        weight = len(_encode(key)) + 2
        if remaining < 2 * _LEAST_BYTES + weight and (rest > 1 or weight > remaining):
            result[MARKER] = f"{rest:,} more keys"
            break
        fitted, size = _fitted(
            item, remaining - weight if rest == 1 else max(_LEAST_BYTES, (remaining - weight) // _SHARE)
        )
        result[key] = fitted
        remaining -= size + weight
    return result


def _fitted(item: object, budget: int) -> tuple[Any, int]:
    """Return an item cut to its budget, and its size as JSON."""
    size = len(_encode(item))
    if size <= budget:
        return item, size
    item = _text(item, budget, len(item.encode())) if isinstance(item, str) else _inside(item, budget)
    return item, len(_encode(item))
