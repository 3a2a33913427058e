"""Matcher of rules: keywords first, then their patterns.

All rules find their spans in the text as it was. Overlapping spans become one, named by the most specific of them. A
text in which something was hidden is searched again until nothing more is found, so cleaning twice changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import ahocorasick

from healkit.sanitizer.rule import Locate, SanitizerRule, checked, located, span_of

#: Ranks of kinds: where two rules hide the same text, it gets the id of the rule with the lower rank.
_RANKS = {"token": 0, "place": 1, "personal": 2, "named": 3}
_MAX_ROUNDS = 4
#: Digits with separators, as people write numbers; never two blanks.
_NUMBER = re.compile(r"[+(\d]\d*+(?:(?:[ .\-/]|\) ?| ?\()\+?\d++)*+")
#: Least characters of a number that is masked; without separators, of a card's, unless it begins with a zero.
_SHORTEST_NUMBER, _SHORTEST_PLAIN = 9, 13
#: Characters that the patterns may read beyond a number.
_LOOK_AHEAD = 4


_WORD_END = re.compile(r"[\s\"',;)}\]]")
_REPLACEMENT = re.compile(r"\[(?:REDACTED:[\w-]+|[A-Z]+)\]")


def is_replacement(text: str) -> bool:
    """Return True for a text that is the replacement of something hidden before."""
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
    """Stretch of a text that is to be hidden, and the rule that says so."""

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
        by_keyword: dict[str, list[tuple[int, SanitizerRule, Locate]]] = {}
        for rule in rules:
            for keyword in () if rule.custom else rule.keywords:
                by_keyword.setdefault(keyword, []).append((_RANKS[rule.kind], rule, rule.locator()))
        self._automaton = ahocorasick.Automaton()
        for keyword, wanted in by_keyword.items():
            self._automaton.add_word(keyword, (len(keyword), tuple(sorted(wanted, key=lambda item: item[0]))))
        if by_keyword:
            self._automaton.make_automaton()

    def find(self, text: str) -> list[HiddenSpan]:
        """Return all spans to hide in `text`, in order and without overlaps."""
        found = self._anchored(text)
        for rule, pattern in self._searched:
            found += [
                HiddenSpan(*span_of(match), _RANKS[rule.kind], rule, None)
                for match in pattern.finditer(text)
                if checked(rule, match)
            ]
        if self._numeric:
            self._among_numbers(text, found)
        if self._custom:
            found += self._by_custom(text)
        if not found:
            return found
        if self._allow:
            found = [item for item in found if not self._allowed(text[item.start : item.end])]
        return _merged(found)

    def _among_numbers(self, text: str, found: list[HiddenSpan]) -> None:
        """Try the number rules on each long enough number; one pass finds these.

        Numbers are rare in prose and common in data, and most are too short for any rule.
        """
        for stretch in _NUMBER.finditer(text):
            start, end = stretch.span()
            if end - start < _SHORTEST_NUMBER or (
                end - start < _SHORTEST_PLAIN and text[start] != "0" and text[start:end].isdigit()
            ):
                continue
            for rule, pattern in self._numeric:
                found += [
                    HiddenSpan(*span_of(match), _RANKS[rule.kind], rule, None)
                    for match in pattern.finditer(text, start, end + _LOOK_AHEAD)
                    if checked(rule, match)
                ]

    def _anchored(self, text: str) -> list[HiddenSpan]:
        folded = text.lower()
        if len(folded) != len(text):  # only İ grows when folded, and positions must stay
            folded = "".join(
                character.lower() if len(character.lower()) == 1 else character for character in text
            )
        found: list[HiddenSpan] = []
        ends = [0, 0, 0, 0]  # end of the last span of each rank; covered text is not searched again
        judged: dict[str, int] = {}  # by rule, up to where it need not look again
        for last, (size, wanted) in self._automaton.iter(folded) if len(self._automaton) else ():
            start = last - size + 1
            for rank, rule, locate in wanted:
                if start < ends[rank] or start < judged.get(rule.id, 0):
                    continue
                span = located(locate, text, start, last + 1)
                if span is None:
                    continue
                if span[1] <= span[0]:
                    judged[rule.id] = span[1]
                    continue
                found.append(HiddenSpan(span[0], span[1], rank, rule, span[2]))
                for covered in range(rank, 4):
                    if span[1] > ends[covered]:
                        ends[covered] = span[1]
        return found

    def _by_custom(self, text: str) -> list[HiddenSpan]:
        folded = text.lower()
        found: list[HiddenSpan] = []
        for rule, pattern in self._custom:
            if rule.keywords and not any(keyword in folded for keyword in rule.keywords):
                continue
            found += [
                HiddenSpan(start, end, _RANKS[rule.kind], rule, None)
                for start, end in _custom_spans(pattern, text)
                if end > start and not is_replacement(text[start:end])
            ]
        return found

    def _allowed(self, text: str) -> bool:
        return any(pattern.fullmatch(text) for pattern in self._allow)

    def text(self, text: str, hidden: Counter[str]) -> str:
        """Return the text with everything hidden, and count each span in `hidden` by its rule.

        What is hidden may uncover the next secret, as in phone numbers without a space between them. So that a long row
        of them costs a bounded number of rounds, the later ones hide all up to the end of the word.
        """
        for number in range(2 * _MAX_ROUNDS):
            found = self.find(text)
            if not found:
                return text
            if number >= _MAX_ROUNDS:
                found = _merged([_to_end_of_word(span, text) for span in found])
            text = replaced(text, found, hidden)
        return text


def _to_end_of_word(span: HiddenSpan, text: str) -> HiddenSpan:
    end = _WORD_END.search(text, span.end)
    return span._replace(end=end.start() if end else len(text))


def _custom_spans(pattern: Any, text: str) -> list[tuple[int, int]]:
    """Return the spans of a custom pattern; where it fails on the text, try each line, and take those it fails on."""
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
    parts: list[str] = []
    position = 0
    for item in found:
        parts += (text[position : item.start], item.shown or item.rule.shown)
        position = item.end
        hidden[item.rule.id] += 1
    return "".join((*parts, text[position:]))


def _merged(found: list[HiddenSpan]) -> list[HiddenSpan]:
    """Merge overlapping spans, each named by the most specific that covers most of it, else by the widest."""
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
        start, end = group[0].start, max(item.end for item in group)
        fitting = [item for item in group if 2 * (item.end - item.start) >= end - start] or group
        best = min(fitting, key=lambda item: (item.rank, item.start - item.end))
        result.append(best._replace(start=start, end=end))
    return result
