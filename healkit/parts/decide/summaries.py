"""Deterministic summaries of texts and frames.

They use no model and no network: the same value always has the same summary. The sanitiser reads a text first. All
listed entries come from the cleaned text, so that no list contains a secret, in whole or in part.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from healkit.core.secrets.cleaner import Cleaner, whole_words
from healkit.errors import UsageInvalid
from healkit.parts.decide.render_summaries import ShownFrameSummary, ShownTextSummary
from healkit.parts.decide.summary_records import Counted, FoundThings, Numbers

#: Number of entries in each list, and the most that can be asked for.
TOP, TOP_MAX = 10, 1000


def summarize(value: object, cleaner: Cleaner, *, top: int = TOP) -> ShownTextSummary | ShownFrameSummary:
    """Return the summary of a text, a frame or an array.

    top: The maximum number of entries in each list. They do not contain values that `cleaner` hides.

    Raises `UsageInvalid` for a value of another kind.
    """
    if not 0 <= top <= TOP_MAX:
        raise UsageInvalid(f"top is {top!r}.", hint=f"Give a number from 0 to {TOP_MAX:,}.")
    if isinstance(value, str):
        return text_summary(value, cleaner, top)

    from healkit.parts.decide import frame_summaries

    summary = frame_summaries.frame_summary(value, cleaner, top)
    if summary is None:
        raise UsageInvalid(
            f"A value of type {type(value).__name__!r} is neither text nor a frame.",
            hint="Pass text, a frame, a series or an array of pandas, numpy, pyarrow or polars.",
        )
    return summary


# Findings in a text.

#: Of a longer text, only so many characters are read.
TEXT_MAX_CHARS = 16_000_000
#: Characters of an entry that are shown.
_TEXT_SHOWN_CHARS = 200
#: What stands for something hidden: it is apart from any word, number or URL.
_GAP = "\0"
_NGRAMS = (1, 2, 3)
_NO_LIMIT = 1 << 40


def text_summary(text: str, cleaner: Cleaner, top: int) -> ShownTextSummary:
    """Return the summary; `top` limits the number of entries in each list."""
    cut = len(text) > TEXT_MAX_CHARS
    read = whole_words(text[:TEXT_MAX_CHARS]) if cut else text
    plain = SURROGATE.sub("\ufffd", read.replace("\r\n", "\n").replace("\r", "\n").replace(_GAP, " "))
    plain, invisible = INVISIBLE.subn("", plain)
    cleaned = cleaner.clean(plain, limit_bytes=_NO_LIMIT)
    findings = _Findings()
    words = Words(FOUND.sub(findings.note, _with_gaps(plain, cleaned.value) if cleaned.hidden else plain))
    entities = {"name": words.names, **{kind: findings.counts[kind] for kind in ENTITIES}}
    return ShownTextSummary(
        characters=len(text),
        size_bytes=len(text.encode("utf-8", "surrogatepass")),
        lines=plain.count("\n") + (plain[-1:] not in ("", "\n")),
        paragraphs=sum(1 for _ in PARAGRAPH.finditer(plain.strip())) + bool(plain.strip()),
        sentences=words.sentences,
        words=words.count,
        distinct_words=words.distinct,
        ngrams={size: words.ngrams(size, top) for size in _NGRAMS},
        entities=_by_kind(entities, top),
        numbers=findings.numbers(),
        urls=_found(findings.counts["url"], top),
        hosts=_found(findings.counts["host"], top),
        citations=_by_kind({kind: findings.counts[kind] for kind in CITATIONS}, top),
        hidden=dict(sorted(cleaned.hidden.items())),
        invisible=invisible,
        cut=cut,
    )


class _Findings:
    """Findings of the patterns in a text, counted by kind."""

    def __init__(self) -> None:
        self.counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._values = array("d")

    def note(self, match: re.Match[str]) -> str:
        """Count a match; return the text from which the words are read in its place."""
        kind, text = str(match.lastgroup).rstrip("2345"), match[0]
        if kind == "number":
            value = float(text.replace(",", "").replace("−", "-"))
            if math.isfinite(value):
                self._values.append(value)
            return text
        if kind in {"url", "doi"}:
            text = _trimmed(text)
        if kind == "doi":
            text = text[text.index("10.") :].lower()
        elif kind == "url":
            self.counts["host"][_host(text)] += 1
        self.counts[kind][text[:_TEXT_SHOWN_CHARS]] += 1
        return _GAP if kind in NO_WORDS else match[0]

    def numbers(self) -> Numbers:
        """Return the range of all numbers."""
        values = self._values
        if not values:
            return Numbers()
        mean = math.fsum(value / len(values) for value in values)
        return Numbers(len(values), len(set(values)), min(values), max(values), float(f"{mean:.12g}"))


def _trimmed(url: str) -> str:
    """Return a URL without punctuation that belongs to the sentence around it."""
    while url and (
        url[-1] in URL_END or (url[-1] in ")]" and url.count(url[-1]) > url.count("(["[")]".index(url[-1])]))
    ):
        url = url[:-1]
    return url


def _host(url: str) -> str:
    try:
        host = urlsplit(url if "://" in url else f"//{url}").hostname
    except ValueError:  # brackets that hold no address
        host = None
    return (host or "?")[:_TEXT_SHOWN_CHARS]


def _with_gaps(text: str, cleaned: str) -> str:
    """Return the cleaned text with gaps for hidden values; marks that were in the original text remain."""
    for mark in sorted(set(HIDDEN.findall(cleaned))):
        if cleaned.count(mark) > text.count(mark):
            cleaned = cleaned.replace(mark, _GAP)
    return cleaned


def _found(counts: Counter[str], top: int) -> FoundThings:
    """Return the counts with the most frequent first; equal counts in the order of the text."""
    return FoundThings(
        counts.total(), len(counts), tuple(Counted(*entry) for entry in counts.most_common(top))
    )


def _by_kind(counts: Mapping[str, Counter[str]], top: int) -> dict[str, FoundThings]:
    return {kind: _found(counted, top) for kind, counted in counts.items() if counted}


# Words: sentences, names, and n-grams.
#
# Each distinct word has a number, and an n-gram is one integer made of such numbers. So all n-grams of millions of
# words are counted exactly by one sort of an array, where a dict of their texts would take gigabytes.

#: A longer word is counted but is part of no n-gram: it is data rather than language.
WORD_MAX_CHARS = 100
#: A longer row of capitalised words is a heading rather than a name.
NAME_MAX_WORDS = 6
#: Number that stands between words that no n-gram may join.
_BREAK = 0


class Words:
    """Words of a text, read in one pass.

    count: All words.
    distinct: The different words, ignoring case.
    names: Rows of capitalised words.
    """

    def __init__(self, text: str) -> None:
        self.count = self.sentences = 0
        self.names: Counter[str] = Counter()
        self._row = array("q")
        self._words = [""]
        #: Word as it is written, and in lower case → its number.
        self._numbers: dict[str, int] = {}
        self._long: set[str] = set()
        self._name: list[str] = []
        self._name_is_first = False
        self._read(text)

    @property
    def distinct(self) -> int:
        """Number of different words, ignoring case."""
        return len(self._words) - 1 + len(self._long)

    def _read(self, text: str) -> None:
        end, before, in_sentence = 0, "", False
        for match in WORD.finditer(text):
            word, start = match[0], match.start()
            if start != end and (start != end + 1 or text[end] not in " \n"):
                self._break()
                if in_sentence and _ends_sentence(text, end, start, before):
                    self.sentences += 1
                    in_sentence = False
            self._take(word, is_first=not in_sentence)
            before, end, in_sentence = word, match.end(), True
        self._break()
        self.sentences += in_sentence

    def _break(self) -> None:
        self._row.append(_BREAK)
        self._end_name()

    def _take(self, word: str, *, is_first: bool) -> None:
        self.count += 1
        if len(word) > WORD_MAX_CHARS:
            self._long.add(word.lower())
            self._break()
            return
        number = self._numbers.get(word)
        if number is None:
            folded = unicodedata.normalize("NFC", word.lower())
            number = self._numbers.setdefault(folded, len(self._words))
            if number == len(self._words):
                self._words.append(folded)
            self._numbers[word] = number
        self._row.append(number)
        if word[0].isupper():
            if not self._name:
                self._name_is_first = is_first
            self._name.append(word)
        elif self._name:
            if word in CONNECTORS:
                self._name.append(word)
            else:
                self._end_name()

    def _end_name(self) -> None:
        """Count the row of capitalised words that ends here, if it is a name."""
        if not self._name:
            return
        name, is_first, self._name = self._name, self._name_is_first, []
        while name and _is_none(name[-1]):
            name.pop()
        while name and _is_none(name[0]):
            del name[0]
            is_first = False
        if not name or len(name) > NAME_MAX_WORDS or len(name[0]) == len(name) == 1:
            return
        if len(name) > 1 or not is_first or name[0].isupper():
            self.names[" ".join(name)] += 1

    def ngrams(self, size: int, top: int) -> FoundThings:
        """Return the n-grams of that length that neither begin nor end with a stop word.

        N-grams of two and more words that occur once are counted but not listed.
        """
        row = np.frombuffer(self._row, np.int64) if self._row else np.zeros(0, np.int64)
        count = max(len(row) - size + 1, 0)
        parts = [row[at : at + count] for at in range(size)]
        stops = np.fromiter((word in STOP_WORDS for word in self._words), bool, len(self._words))
        wanted = ~stops[parts[0]] & ~stops[parts[-1]]
        for part in parts:
            wanted &= part != _BREAK
        places = np.flatnonzero(wanted)
        codes = parts[0][places]
        for part in parts[1:]:
            codes = np.unique(codes, return_inverse=True)[1] * len(self._words) + part[places]
        _, first, counts = np.unique(codes, return_index=True, return_counts=True)
        listed = np.flatnonzero(counts >= min(size, 2))
        order = first[listed] - counts[listed] * (len(row) + 1)  # by count, then by the first place
        best = listed[_smallest(order, top)]
        entries = [
            Counted(self._text(row[places[first[at]] :][:size].tolist()), int(counts[at])) for at in best
        ]
        return FoundThings(len(places), len(counts), tuple(entries))

    def _text(self, numbers: list[int]) -> str:
        words = [self._words[number] for number in numbers]
        return ("" if all(map(CJK.fullmatch, words)) else " ").join(words)


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the smallest values, in order."""
    places = np.arange(len(values)) if len(values) <= count else np.argpartition(values, count)[:count]
    return places[np.argsort(values[places])]


def _is_none(word: str) -> bool:
    """Return True for a word with which no name begins or ends."""
    return word in CONNECTORS or word.lower() in STOP_WORDS


def _ends_sentence(text: str, end: int, start: int, before: str) -> bool:
    """Return True if a sentence ends between the word `before`, which ends at `end`, and the next one."""
    for match in SENTENCE_END.finditer(text, end, start + 1):
        is_short = match[0] == "." and match.start() == end
        if not (is_short and (len(before) == 1 or before.lower() in ABBREVIATIONS)):
            return True
    return False


# Patterns of what is listed.


def _patterns(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the pattern of each kind, with its parts in place of their names."""
    parts: dict[str, str] = {}

    def whole(pattern: str) -> str:
        return re.sub(r"<([A-Z]+)>", lambda name: parts[name[1]], pattern)

    for name, part in data["parts"].items():
        parts[name] = whole(part)
    return {kind: whole(entry["pattern"]) for kind, entry in data["kinds"].items()}


_DATA = tomllib.loads(Path(__file__).with_name("summary_patterns.toml").read_text(encoding="utf-8"))
#: All kinds; `lastgroup` is the kind. They are tried where a word begins, and at brackets and signs; not within words,
#: which would cost most of the time.
FOUND = re.compile(
    r"(?:(?<![^\W_])(?=[\w$€£¥₹@#+−-])|(?=\[[@1-9]|\([A-Z]|\\c))(?:"
    + "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _patterns(_DATA).items())
    + ")"
)
CITATIONS, ENTITIES, NO_WORDS = _DATA["citations"], _DATA["entities"], frozenset(_DATA["not_words"])
STOP_WORDS, CONNECTORS, ABBREVIATIONS = (
    frozenset(_DATA[name].split()) for name in ("stop_words", "connectors", "abbreviations")
)
#: Vowel signs, accents and joiners, which `\w` does not hold but words do.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ecd"
    "\u102b-\u103e\u1056-\u109d\u17b4-\u17d3\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f\u200c\u200d"
)
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LETTERS = rf"[^\W_{_CJK}]"
#: Word: letters, digits and marks that begin with a letter, with single hyphens and apostrophes between them. In
#: Chinese and Japanese, which have no spaces, each character is a word.
WORD = re.compile(
    rf"(?<!{_LETTERS})(?!\d){_LETTERS}++(?:[{_MARKS}]++{_LETTERS}*+|['’-]{_LETTERS}++)*+|[{_CJK}]"
)
CJK = re.compile(f"[{_CJK}]")
#: End of a sentence, with what follows it.
SENTENCE_END = re.compile(r"[.!?…](?=[\s\"'”’)\]])|[。！？]|\n[^\S\n]*+\n")
PARAGRAPH = re.compile(r"\n[^\S\n]*+\n\s*+")
#: Characters without width, and those that reorder text.
INVISIBLE = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
SURROGATE = re.compile("[\ud800-\udfff]")
#: A replacement that the sanitiser may have made.
HIDDEN = re.compile(r"\[(?:REDACTED:[\w-]{1,100}|[A-Z]{1,40})\]")
#: Signs that end a sentence around a URL rather than the URL.
URL_END = ".,;:!?*_"
