"""Matcher of rules, in a text and through nested data.

Keywords are found first, and their rules' patterns are tried there. All rules find their spans in the original text.
Overlapping spans become one, named by the most specific of them. After something was hidden, the text is searched again
until nothing more is found, so cleaning twice changes nothing.
"""

from __future__ import annotations

import base64
import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote

import ahocorasick
import msgspec

from healkit.core.secrets.secret_names import Secrecy, secrecy_of, word_set, words_in_name
from healkit.core.wire.encoding import int_text, type_only
from healkit.parts.sanitizer.private_keys import JWK_MEMBERS
from healkit.parts.sanitizer.rule import (
    FOUND,
    READ_ON,
    Locate,
    SanitizerRule,
    Span,
    allow_later_work,
    allow_work,
    checked,
    span_of,
    spend_tries,
    tries_left,
    word_behind,
)
from healkit.parts.sanitizer.secret_values import HIDDEN, STRUCTURED, hides, looks_like_token, spells_bytes
from healkit.parts.sanitizer.syntaxes import COMMAND_PASSWORD, SECRET_NAME, argument_with_secret

#: Ranks of kinds: where two rules hide the same text, it gets the id of the rule with the lower rank.
_RANKS = {"token": 0, "place": 1, "personal": 2, "named": 3}
_MAX_ROUNDS = 4
#: Digits with separators, as people write numbers, never two blanks: one that is long enough for a rule. In ASCII the
#: search takes a fifth of the time.
_LONG = r"[+(D](?=[D .\-/()+]{8})[D]*+(?:(?:[ .\-/]|\) ?| ?\()\+?[D]++)*+"
_LONG_NUMBER, _LONG_ASCII_NUMBER = (re.compile(_LONG.replace("D", digits)) for digits in (r"\d", "0-9"))
#: Least characters of a number that is masked; without separators, of a card's, unless it begins with a zero.
_SHORTEST_NUMBER, _SHORTEST_PLAIN = 9, 13
#: Least characters of a number that begins with neither a plus, a zero nor a bracket.
_SHORTEST_OTHER = 11
#: Texts up to that size are common in data: without keyword and number they take a short way.
_SHORT_CHARS, _SHORTEST_SEARCHED = 64, 15
_LETTERS = frozenset(string.ascii_lowercase)
#: Characters that the patterns may read beyond a number.
_LOOK_AHEAD = 4


#: At the end of a text that was cut, what is searched again.
_CUT_CHARS = 1024
_BLANK, _NEAR_CHARS = re.compile(r"\s"), 512
#: Of a text whose limit is used up, what is hidden behind a keyword unjudged.
_UNJUDGED_CHARS = 4096
_IN_HIDDEN, _HIDDEN_MAX_CHARS = re.compile(r"\[REDACTED:[\w-]*$"), 64
_WORD_END = re.compile(r"[\s\"',;)}\]]")
_REPLACEMENT = re.compile(r"\[(?:REDACTED:[\w-]+|[A-Z]+)\]")


def is_replacement(text: str) -> bool:
    """Return True for a text that replaces something hidden before."""
    return _REPLACEMENT.fullmatch(text) is not None


def fast_pattern(pattern: str) -> Any:
    """Compile the pattern with google-re2, which is always linear; with `re` if re2 is missing or refuses it."""
    try:
        import re2
    except ImportError:
        return re.compile(pattern)
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return re.compile(pattern)


class HiddenSpan(NamedTuple):
    """Part of a text to hide, and its rule."""

    start: int
    end: int
    rank: int
    rule: SanitizerRule
    shown: str | None


class Matcher:
    """Compiled table of rules; several threads may use it at once."""

    def __init__(self, rules: Sequence[SanitizerRule], allow: Sequence[re.Pattern[str]] = ()) -> None:
        self.rules = tuple(rules)
        self._allow = tuple(allow)
        plain = [(rule, re.compile(rule.pattern)) for rule in rules if not rule.keywords and not rule.custom]
        self._searched = [item for item in plain if not item[0].among_numbers]
        self._numeric = [item for item in plain if item[0].among_numbers]
        self._custom = [(rule, fast_pattern(rule.pattern)) for rule in rules if rule.custom]
        by_keyword: dict[str, list[tuple[int, int, int, SanitizerRule, Locate]]] = {}
        for number, rule in enumerate(rules):
            locate, work = rule.locator(), rule.work if rule.locate is not None else 0
            for keyword in () if rule.custom else rule.keywords:
                by_keyword.setdefault(keyword, []).append((_RANKS[rule.kind], number, work, rule, locate))
        self._automaton = ahocorasick.Automaton()
        for keyword in sorted(by_keyword, key=_rarity):
            wanted = sorted(by_keyword[keyword], key=lambda item: item[0])
            of_words = keyword[0].isalpha() and all(rule.of_words for _, _, _, rule, _ in wanted)
            self._automaton.add_word(keyword, (len(keyword), of_words, tuple(wanted)))
        if by_keyword:
            self._automaton.make_automaton()

    def find(self, text: str) -> list[HiddenSpan]:
        """Return all spans to hide in `text`, in order and without overlaps."""
        allow_work(len(text))
        return self._find(text, ((0, len(text)),))

    def _find(self, text: str, windows: Sequence[tuple[int, int]]) -> list[HiddenSpan]:
        """Return the spans to hide that begin in one of the windows; the text around these is read too."""
        spans = self._anchored(text, windows)
        for begin, end in windows:
            for rule, pattern in self._searched:
                for match in pattern.finditer(text, begin, end):
                    if checked(rule, match):
                        spans.append(HiddenSpan(*span_of(match), _RANKS[rule.kind], rule, None))
            if self._numeric and _LONG_NUMBER.search(text, begin, end):
                self._among_numbers(text, begin, end, spans)
        if self._custom:
            spans += self._by_custom(text)
        if not spans:
            return spans
        if self._allow:
            spans = [item for item in spans if not self._allowed(text[item.start : item.end])]
        return _merged(spans)

    def _among_numbers(self, text: str, begin: int, limit: int, found: list[HiddenSpan]) -> None:
        """Try the number rules on each long enough number without a better rule; one pass finds these."""
        better = []
        for item in found:
            if (
                item.rank <= _RANKS["personal"] and not self._allow
            ):  # or it may be allowed, and the number not
                better.append((item.start, item.end))  # noqa: PERF401 - a comprehension is a call more for each text
        better.sort()
        reached = covered = 0
        for start, end in _long_numbers(text, begin, limit):
            while reached < len(better) and better[reached][0] <= start:
                covered = max(covered, better[reached][1])
                reached += 1
            if end + _LOOK_AHEAD <= covered or end == covered:
                continue
            for rule, pattern in self._numeric:
                whole = False
                for match in pattern.finditer(text, start, end + _LOOK_AHEAD):
                    if checked(rule, match):
                        span = span_of(match)
                        found.append(HiddenSpan(*span, _RANKS[rule.kind], rule, None))
                        whole = whole or span == (start, end)
                if whole and not self._allow:
                    break  # the others would find the same

    def _anchored(self, text: str, windows: Sequence[tuple[int, int]]) -> list[HiddenSpan]:
        folded = text.lower()
        if len(folded) != len(text):  # only İ grows when folded, and positions must stay
            folded = "".join(
                character.lower() if len(character.lower()) == 1 else character for character in text
            )
        spans: list[HiddenSpan] = []
        ends = [0, 0, 0, 0]  # end of the last span of each rank; covered text is not searched again
        tries = allowed = tries_left()
        judged = [0] * len(self.rules)  # by rule, up to where it need not look again
        hits: Iterator[Any] = iter(())
        for window in windows if len(self._automaton) else ():
            hits = chain(hits, self._automaton.iter(folded, *window))
        no_escape = "\\" not in text and "%" not in text and "\x1b" not in text
        for last, (size, of_words, wanted) in hits:
            start = last - size + 1
            if of_words and no_escape and folded[start - 1 : start] in _LETTERS:
                continue  # in the middle of a word
            if text.startswith(HIDDEN, start - len(HIDDEN)) or (
                tries <= 0 and _IN_HIDDEN.search(text, max(0, start - _HIDDEN_MAX_CHARS), start)
            ):
                continue  # a word of what stands for a hidden text
            for rank, number, work, rule, locate in wanted:
                if start < ends[rank] or start < judged[number]:
                    continue
                tries -= work
                try:
                    if tries > 0 or not work:
                        span = locate(text, start, last + 1)
                    else:
                        span = _unjudged(text, start, last + 1, rule)
                except Exception:  # noqa: BLE001 - what stands here cannot be judged; the rest is still cleaned
                    span = word_behind(text, start, last + 1)
                if span is None:
                    continue
                if span[1] <= span[0]:
                    judged[number] = span[1]
                    tries -= READ_ON if work and span[2] is None else 0
                    continue
                tries -= FOUND if work else 0
                spans.append(HiddenSpan(span[0], span[1], rank, rule, span[2]))
                for covered in range(rank, 4):
                    if span[1] > ends[covered]:
                        ends[covered] = span[1]
        spend_tries(allowed - tries)
        return spans

    def _by_custom(self, text: str) -> list[HiddenSpan]:
        folded = text.lower()
        spans: list[HiddenSpan] = []
        for rule, pattern in self._custom:
            if rule.keywords and not any(keyword in folded for keyword in rule.keywords):
                continue
            spans += [
                HiddenSpan(start, end, _RANKS[rule.kind], rule, None)
                for start, end in _custom_spans(pattern, text)
                if end > start and not is_replacement(text[start:end])
            ]
        return spans

    def _allowed(self, text: str) -> bool:
        return any(pattern.fullmatch(text) for pattern in self._allow)

    def is_plain(self, text: str) -> bool:
        """Return True for a short text without a keyword, and without a match for patterns that need none."""
        if len(text) > _SHORT_CHARS or self._custom or not self._automaton or not text.isascii():
            return False
        for _ in self._automaton.iter(text.lower()):
            return False
        if _LONG_ASCII_NUMBER.search(text) is not None:
            for _ in _long_numbers(text, 0, len(text)):
                return False
        if len(text) >= _SHORTEST_SEARCHED:
            for _, pattern in self._searched:
                if pattern.search(text):
                    return False
        return True

    def text(self, text: str, hidden: Counter[str], *, cut: bool = False) -> str:
        """Return the text with everything hidden, and count each span in `hidden` by its rule.

        cut: The complete text was clean before its end was cut off, so only the end is searched.

        Hiding one secret may reveal the next, as in phone numbers without a space between them. So the surroundings of
        hidden spans are searched again. Custom rules search the whole text again, because their patterns may read any
        distance. The later rounds hide everything up to the end of the word, so a long row needs few of them.
        """
        if self.is_plain(text):
            return text
        allow_work(len(text))
        windows: Sequence[tuple[int, int]] = ((max(0, len(text) - _CUT_CHARS) if cut else 0, len(text)),)
        for number in range(2 * _MAX_ROUNDS):
            spans = self._find(text, windows)
            if not spans:
                return text
            if number >= _MAX_ROUNDS:
                spans = _merged([_to_end_of_word(span, text) for span in spans])
            text = replaced(text, spans, hidden)
            if self.is_plain(text):
                return text
            windows = _around(spans, text)
            if number == 0:
                allow_later_work(len(text))
        return text


#: Characters of code and prose, the most frequent first. The automaton looks through the branches of a state in the
#: order they were added in; this order saves it a third of the time.
_FREQUENT = {
    character: number for number, character in enumerate(" etrsoainldcpumf_.hgxbyvk,\"()'=:w1jq-0/2z")
}


def _rarity(keyword: str) -> list[int]:
    return [_FREQUENT.get(character, len(_FREQUENT)) for character in keyword]


def _long_numbers(text: str, begin: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of each number that is long enough for a rule; numbers are common, and most are harmless."""
    pattern = _LONG_ASCII_NUMBER if text.isascii() else _LONG_NUMBER
    for stretch in pattern.finditer(text, begin, limit):
        start, end = stretch.span()
        size = end - start
        if size < _SHORTEST_NUMBER or (
            text[start] not in "+0("
            and (size < _SHORTEST_OTHER or (size < _SHORTEST_PLAIN and text[start:end].isdigit()))
        ):
            continue
        yield start, end


def _unjudged(text: str, start: int, end: int, rule: SanitizerRule) -> Span:
    """Return the part to hide at a keyword of a short text: the rest of its line, or of a key's block."""
    limit = min(len(text), end + _UNJUDGED_CHARS)
    line_end = text.find("\n", end, limit)
    return start, limit if line_end < 0 or rule.kind == "place" else line_end, None


def _around(found: Sequence[HiddenSpan], text: str) -> list[tuple[int, int]]:
    """Return the surroundings of the replacements in `text`, from word's end to word's end."""
    windows: list[tuple[int, int]] = []
    shift = reach = 0
    for span in found:
        begin = max(0, span.start + shift - _NEAR_CHARS)
        shift += len(span.shown or span.rule.shown) - (span.end - span.start)
        if windows and begin <= reach:
            begin = windows.pop()[0]
        reach = span.end + shift + _NEAR_CHARS
        windows.append((begin, reach))
    return [(_word_end(text, begin) if begin else 0, _word_end(text, end)) for begin, end in windows]


def _word_end(text: str, position: int) -> int:
    end = _BLANK.search(text, position, position + _NEAR_CHARS)
    return end.start() if end else min(len(text), position + _NEAR_CHARS)


def _to_end_of_word(span: HiddenSpan, text: str) -> HiddenSpan:
    end = _WORD_END.search(text, span.end)
    return span._replace(end=end.start() if end else len(text))


def _custom_spans(pattern: Any, text: str) -> list[tuple[int, int]]:
    """Return the spans of a custom pattern; if it fails on the text, try each line, and hide failing lines."""
    group = pattern.groupindex.get("secret", 0)
    try:
        return [match.span(group) for match in pattern.finditer(text)]
    except Exception:  # noqa: BLE001 - google-re2 refuses half a surrogate pair, for one
        lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return [(0, len(text.rstrip("\r\n")))]
    spans: list[tuple[int, int]] = []
    begin = 0
    for line in lines:
        spans += [(begin + start, begin + end) for start, end in _custom_spans(pattern, line)]
        begin += len(line)
    return spans


def replaced(text: str, found: Sequence[HiddenSpan], hidden: Counter[str]) -> str:
    """Return the text with the spans replaced, and count them in `hidden` by rule."""
    remember = hidden.note if isinstance(hidden, Hidden) else None
    parts: list[str] = []
    position = 0
    for item in found:
        parts += (text[position : item.start], item.shown or item.rule.shown)
        position = item.end
        if remember is None:
            hidden[item.rule.id] += 1
        else:
            remember(text[item.start : position], item.rule)
    return "".join((*parts, text[position:]))


def _merged(found: list[HiddenSpan]) -> list[HiddenSpan]:
    """Merge overlapping spans, each named by the most specific that covers most of it, otherwise by the widest."""
    found.sort(key=lambda item: (item.start, -item.end))
    merged: list[list[HiddenSpan]] = []
    reach = -1
    for item in found:
        if item.start < reach:
            merged[-1].append(item)
        else:
            merged.append([item])
        reach = max(reach, item.end)
    result: list[HiddenSpan] = []
    for group in merged:
        if len(group) == 1:
            result += group
            continue
        start, end = group[0].start, max(item.end for item in group)
        fitting = [item for item in group if 2 * (item.end - item.start) >= end - start] or group
        best = min(fitting, key=lambda item: (item.rank, item.start - item.end))
        result.append(HiddenSpan(start, end, best.rank, best.rule, best.shown))
    return result


# Values that were hidden once, hidden wherever they stand.
#
# A secret travels under other names: an argument `password` is a local `p` in one frame and a word of the message in
# the next. So what was hidden in one record is hidden at its other places too. The value must not be a word that is in
# the record by chance. So it has at least six characters with a digit, a symbol or mixed case, or eight letters or
# digits. It is not a common word, and it is hidden only where it stands alone, not inside a longer word. Personal data
# is left out: each kind has its own pattern.


_LEAST_MIXED, _LEAST_PLAIN, _MOST_CHARS = 6, 8, 512
#: A record of more secrets is a list of them, in which each has its name.
_VALUES_MAX = 32
#: In longer texts a value is looked for only as it is, not as `repr`, JSON or a URL write it.
_LONG_CHARS = 100_000
_COMMON = word_set(
    "localhost postgres postgresql username password passwords passphrase anonymous administrator development "
    "production staging testing undefined disabled required optional default example identifier application "
    "database document function argument arguments attribute exception traceback"
)
_MARK = "[REDACTED"

_encode = msgspec.json.Encoder().encode


class KnownValues:
    """Hidden values of one record, with their replacements."""

    def __init__(self) -> None:
        #: Value → the rule that hid it; empty until something is hidden.
        self.rules: dict[str, SanitizerRule] = {}

    def add(self, original: str, rule: SanitizerRule) -> None:
        """Remember a text that the rule hid, if it differs from a common word."""
        if rule.kind == "personal" or len(self.rules) >= _VALUES_MAX:
            return
        value = original.strip().strip("\"'`")
        if value not in self.rules and _is_distinct(value):
            self.rules[value] = rule

    def hide(self, text: str, hidden: Counter[str]) -> str:
        """Return the text with these values hidden where they are separate words, each counted by its rule."""
        for value, rule in self.rules.items():
            for form in _forms(value) if len(text) < _LONG_CHARS else (value,):
                if form in text:
                    shown = rule.shown.replace("\\", r"\\")
                    text, times = _alone(form).subn(shown, text)
                    if times:
                        hidden[rule.id] += times
        return text

    def hide_in(self, value: object, hidden: Counter[str]) -> Any:
        """Return JSON data with these values hidden in its texts and keys."""
        if isinstance(value, str):
            return self.hide(value, hidden)
        if not self.rules or not isinstance(value, list | dict):
            return value
        try:
            whole = _encode(value).decode()
        except (ValueError, msgspec.MsgspecError):  # half a surrogate pair, for one
            return self._walk(value, hidden)
        present = KnownValues()
        present.rules = {
            secret: rule
            for secret, rule in self.rules.items()
            if any(form in whole for form in _forms(secret))
        }
        return present._walk(value, hidden) if present.rules else value

    def _walk(self, value: object, hidden: Counter[str]) -> Any:
        if isinstance(value, str):
            return self.hide(value, hidden)
        if isinstance(value, list):
            return [self._walk(item, hidden) for item in value]
        if isinstance(value, dict):
            return {self.hide(key, hidden): self._walk(item, hidden) for key, item in value.items()}
        return value


class Hidden(Counter[str]):
    """Count of hidden values, by rule, with the values themselves."""

    def __init__(self, known: KnownValues | None = None) -> None:
        super().__init__()
        self.known = KnownValues() if known is None else known

    def note(self, original: str, rule: SanitizerRule) -> None:
        """Count a text that the rule hid, and remember it."""
        self[rule.id] += 1
        self.known.add(original, rule)


def _is_distinct(value: str) -> bool:
    if not _LEAST_MIXED <= len(value) <= _MOST_CHARS or _MARK in value or "\n" in value:
        return False
    if value.isdigit() or (value.isalpha() and (value.islower() or value.istitle() or value.isupper())):
        return len(value) >= _LEAST_PLAIN and value.lower() not in _COMMON
    return True


def _forms(value: str) -> tuple[str, ...]:
    """List the forms of a value: as it is, and within `repr`, JSON and a URL."""
    if value.isalnum():
        return (value,)
    in_json, in_url = json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="", errors="replace")
    return tuple(dict.fromkeys((value, repr(value)[1:-1], in_json, in_url)))


def _alone(form: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if form[0].isalnum() or form[0] == "_" else ""
    after = r"(?!\w)" if form[-1].isalnum() or form[-1] == "_" else ""
    return re.compile(f"(?<!REDACTED:){before}{re.escape(form)}{after}")


# Nested data: each leaf, judged by its key.
#
# Structure says more than text: a value under `password` is a password whatever it looks like.
# `{"name": …, "value": …}`, `["--token", …]` and `("Authorization", …)` put the name beside the value.


#: Words of keys whose numbers are personal; the matcher gets them as the text `word: number`.
_PERSONAL_WORDS = word_set(
    "phone mobile tel telephone cell cellphone fax whatsapp msisdn sms ssn social card pan cc creditcard "
    "cardnumber phonenumber"
)
#: Keys that describe the secrets of a collection: `{"credentials": {"user": …, "host": …}}`.
_DESCRIBES = word_set(
    "user username login email host hostname name type kind id service provider region url port database db "
    "role"
)
_COLLECTIONS = frozenset(["secrets", "credentials", "creds", "passwords", "cookies"])
_PLAIN_KEY = re.compile(r"[A-Za-z_-]{1,40}\Z")
_NAME_KEYS = ("name", "key", "header", "Name", "Key")
_VALUE_KEYS = frozenset(["value", "val", "Value", "content"])
#: Cell that a preview of a frame has hidden (`healkit.core.crossing.codec.HIDDEN`).
_HIDDEN_CELL = "(hidden)"
_ROWS_KEYS = frozenset(["rows", "first", "data", "values"])
_LOGINS = {"auth", "basic_auth", "credentials", "proxy_auth"}
#: Of longer lists of texts none is taken for a program's arguments.
_ARGUMENTS_MAX = 60
_BLOB_KEYS = {"base64", "size_bytes"}
_WIDE_BITS, _SHORT_TEXT_CHARS = 64, 64
_WIDE = 1 << (_WIDE_BITS - 1)
#: Smaller numbers are neither personal nor a password.
_LEAST_NUMBER = 1000
#: Kinds of names whose numbers are secrets; a `token` is a model's number of a word.
_NUMBER_HIDES = frozenset({Secrecy.PASSWORD, Secrecy.SECRET, Secrecy.PIN})
_BYTES_BEHIND = frozenset({Secrecy.TOKEN, Secrecy.SECRET, Secrecy.PASSWORD, Secrecy.PHRASE})


class _KeyFacts(NamedTuple):
    """Facts about a key besides its secrecy."""

    personal: bool
    describes: bool
    collection: bool


@lru_cache(maxsize=16_384)
def _facts_of_key(name: str) -> _KeyFacts:
    words = words_in_name(name[-80:])
    last = words[-1:]
    return _KeyFacts(
        not _PERSONAL_WORDS.isdisjoint(words),
        not _DESCRIBES.isdisjoint(last),
        not _COLLECTIONS.isdisjoint(last),
    )


@lru_cache(maxsize=16_384)
def _is_plain_key(key: str) -> bool:
    return _PLAIN_KEY.match(key) is not None


class Traversal:
    """Cleaning of one value, with the count of hidden values so far.

    cut: The value was clean before parts of it were cut off; only the ends of its texts are searched again.
    known: Values that were hidden earlier in the same record.
    """

    def __init__(self, matcher: Matcher, *, cut: bool = False, known: KnownValues | None = None) -> None:
        self._matcher, self._cut = matcher, cut
        #: Short texts in which nothing was hidden, and these with their keys: data repeats them.
        self._plain: set[str] = set()
        self._plain_items: set[tuple[str, str, Secrecy]] = set()
        self.hidden = Hidden(known)

    def value(self, value: object, name: str = "", under: Secrecy = Secrecy.NONE) -> Any:
        """Return the value cleaned; `name` is its key, `under` the kind of the collection around it.

        A part that cannot be cleaned is replaced by its type's name; the values around it stay.
        """
        try:
            if isinstance(value, str):
                return self._text(value, name, under)
            if isinstance(value, dict):
                return self._object(value, name, under)
            if isinstance(value, list):
                return self._list(value, name, under)
            if isinstance(value, int) and not isinstance(value, bool):
                return self._number(value, name)
            return value
        except Exception:  # noqa: BLE001 - a part that cannot be cleaned costs itself only
            self.hidden["unreadable"] += 1
            return type_only(value)

    def _text(self, text: str, name: str, under: Secrecy) -> str:
        level = secrecy_of(name) if name else Secrecy.NONE
        if level is Secrecy.QUERY or (level is Secrecy.NONE and under and not _facts_of_key(name).describes):
            level = under
        if level is Secrecy.NONE:
            if name and len(text) <= 40 and _facts_of_key(name).personal:
                return self._personal(text, name)
            if text in self._plain:
                return text
            cleaned = self._matcher.text(text, self.hidden, cut=self._cut)
            if cleaned is text and len(text) <= _SHORT_TEXT_CHARS:
                self._plain.add(text)
            return cleaned
        if level is Secrecy.LOCATOR:
            cleaned = self._matcher.text(text, self.hidden, cut=self._cut)
            return (
                cleaned if cleaned != text or not hides(level, name, text, STRUCTURED) else self._hide(text)
            )
        if not hides(level, name, text, STRUCTURED):
            return self._matcher.text(text, self.hidden, cut=self._cut)
        return self._hide(text)

    def _hide(self, text: str) -> str:
        """Hide the whole text; count it under its format if that is known."""
        start = len(text) - len(text.partition(" ")[2]) if _SCHEME_FIRST.match(text) else 0
        spans = [
            item
            for item in self._matcher.find(text[:4096])
            if 2 * (item.end - item.start) >= len(text) - start
        ]
        rule = spans[0].rule if spans else SECRET_NAME
        if spans and rule.kind == "personal":
            rule = SECRET_NAME
        return replaced(text, [HiddenSpan(start, len(text), 0, rule, None)], self.hidden)

    def _personal(self, text: str, name: str) -> str:
        ahead = f"{' '.join(words_in_name(name))}: "
        spans = [item for item in self._matcher.find(ahead + text) if item.start >= len(ahead)]
        moved = [item._replace(start=item.start - len(ahead), end=item.end - len(ahead)) for item in spans]
        return self._matcher.text(replaced(text, moved, self.hidden), self.hidden)

    def _number(self, value: int, name: str) -> int | str:
        if value.bit_length() > _WIDE_BITS - 1:
            return int_text(value)
        if not name or not _LEAST_NUMBER <= value < 10**19:
            return value
        level = secrecy_of(name)
        if level in _NUMBER_HIDES and not name.endswith("s"):
            return self._hide(str(value))
        if _facts_of_key(name).personal:
            cleaned = self._personal(str(value), name)
            return value if cleaned == str(value) else cleaned
        return value

    def _object(self, value: dict[str, Any], name: str, under: Secrecy) -> dict[str, Any]:
        if value.keys() == _BLOB_KEYS and isinstance(value["base64"], str):
            return self._blob(value, name)
        if type(value.get("columns")) is list:
            value = self._table(value)
        if name and _facts_of_key(name).collection:
            under = Secrecy.PASSWORD if "password" in name.lower() else Secrecy.SECRET
        stated = self._stated_name(value)
        result: dict[str, Any] = {}
        web_key = "kty" in value
        usual = not stated and not web_key
        for key, item in value.items():
            kind = type(item)
            if kind is str and usual and key not in result and (key, item, under) in self._plain_items:
                result[key] = item
                continue
            cleaned_key = key if _is_plain_key(key) else self._matcher.text(key, self.hidden)
            if cleaned_key in result or (cleaned_key != key and cleaned_key in value):
                cleaned_key = self._another(cleaned_key, value, result)
            if web_key and key in JWK_MEMBERS and kind is str and len(item) >= 16:
                result[cleaned_key] = self._hide(item)
                continue
            if kind is float or item is None or (kind is int and 0 <= item < _LEAST_NUMBER):
                result[cleaned_key] = item
                continue
            result[cleaned_key] = self.value(item, stated if stated and key in _VALUE_KEYS else key, under)
            if (
                usual
                and kind is str
                and result[cleaned_key] is item
                and cleaned_key is key
                and len(item) <= _SHORT_TEXT_CHARS
            ):
                self._plain_items.add((key, item, under))
        return result

    def _table(self, table: dict[str, Any]) -> dict[str, Any]:
        """Clean `{"columns": […], "rows": [[…], …]}`: the cells of a column as values under its name."""
        names = [name if isinstance(name, str) else "" for name in table["columns"]]
        if not any(secrecy_of(name) for name in names if name):
            return table
        for key in _ROWS_KEYS & table.keys():
            rows = table[key]
            if isinstance(rows, list) and all(
                isinstance(row, list) and len(row) == len(names) for row in rows
            ):
                cells = [
                    [
                        cell if cell == _HIDDEN_CELL else self.value(cell, name)
                        for cell, name in zip(row, names, strict=True)
                    ]
                    for row in rows
                ]
                table = {**table, key: cells}
        return table

    def _blob(self, value: dict[str, Any], name: str) -> dict[str, Any]:
        """Clean bytes as `healkit.core.wire.encoding` writes them: base64 of a text is searched like any text."""
        try:
            text = base64.b64decode(value["base64"]).decode()
        except ValueError:
            return value
        before = self.hidden.total()
        cleaned = self.value(text, name)
        if self.hidden.total() == before:
            return value
        return {"text": cleaned, "size_bytes": value["size_bytes"]}

    @staticmethod
    def _stated_name(value: dict[str, Any]) -> str:
        """Return the secret's name in `{"name": "DB_PASSWORD", "value": …}`, or an empty text."""
        if len(value) > 12 or _VALUE_KEYS.isdisjoint(value):
            return ""
        for key in _NAME_KEYS:
            stated = value.get(key)
            if isinstance(stated, str) and len(stated) <= 80 and secrecy_of(stated) is not Secrecy.NONE:
                return stated
        return ""

    @staticmethod
    def _another(shown: str, *taken: dict[str, Any]) -> str:
        """Return a free key for a second key that is the same after cleaning."""
        turn = 2
        while any(f"{shown} {turn}" in mapping for mapping in taken):
            turn += 1
        return f"{shown} {turn}"

    def _list(self, value: list[Any], name: str, under: Secrecy) -> list[Any]:
        level = secrecy_of(name) if name else Secrecy.NONE
        if level in _BYTES_BEHIND and len(value) >= 8 and all(type(item) is int for item in value):
            numbers = ", ".join(map(str, value))
            if spells_bytes(numbers, level):
                return [self._hide(numbers)]
        pair = len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], str) and not name
        result: list[Any] = []
        previous = ""
        if 3 <= len(value) <= _ARGUMENTS_MAX and all(isinstance(item, str) for item in value):
            value = self._arguments(value)
        plain_numbers = level not in {Secrecy.PASSWORD, Secrecy.PIN} and not (
            name and _facts_of_key(name).personal
        )
        for position, item in enumerate(value):
            if type(item) is float or (plain_numbers and type(item) is int and -_WIDE < item < _WIDE):
                result.append(item)
                previous = ""
                continue
            beside = ""
            if position == 1 and len(value) == 2 and name.lower() in _LOGINS and isinstance(item, str):
                beside = "password"  # `auth=("user", "…")`, as HTTP clients take it
            elif (
                isinstance(item, str) and previous and ((pair and position == 1) or previous.startswith("-"))
            ):
                beside = self._beside(previous, item)
            result.append(self.value(item, beside or name, under))
            previous = item if isinstance(item, str) and len(item) <= 80 else ""
        return result

    def _arguments(self, value: list[str]) -> list[str]:
        """Return a program's arguments without their secret: `["docker", "login", "-p", "…"]`."""
        location = argument_with_secret(value)
        if location is None:
            return value
        position, start = location
        item = value[position]
        hidden = replaced(item, [HiddenSpan(start, len(item), 0, COMMAND_PASSWORD, None)], self.hidden)
        return [*value[:position], hidden, *value[position + 1 :]]

    @staticmethod
    def _beside(previous: str, item: str) -> str:
        """Return the name that the item before gives to this one: an option, or the name of a header or parameter."""
        if (
            item.startswith("-")
            or " " in previous
            or "=" in previous
            or secrecy_of(previous) in {Secrecy.NONE, Secrecy.WEAK}
        ):
            return ""
        return previous if previous.startswith("-") or looks_like_token(item.rpartition(" ")[2]) else ""


_SCHEME_FIRST = re.compile(r"(?:Basic|Bearer|Digest|Token|ApiKey|SSWS)\s+\S", re.IGNORECASE)
