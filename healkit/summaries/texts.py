"""Summary of a text.

The sanitiser reads the text first. All that is listed is read from what it leaves, so that no secret is in any list, in
whole or in part.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from urllib.parse import urlsplit

from healkit.contracts.data import Counted, Found, Numbers
from healkit.rendering.summaries import ShownTextSummary
from healkit.sanitizer.cleaner import Cleaner
from healkit.sanitizer.truncation import whole_words
from healkit.summaries import patterns
from healkit.summaries.ngrams import Words

#: Of a longer text, only so many characters are read.
TEXT_MAX_CHARS = 16_000_000
#: Characters of an entry that are shown.
_SHOWN_CHARS = 200
#: What stands for something hidden: it is no part of any word, number or URL.
_GAP = "\0"
_NGRAMS = (1, 2, 3)
_ANY_BYTES = 1 << 40


def summary_of(text: str, cleaner: Cleaner, top: int) -> ShownTextSummary:
    """Return the summary; `top` is the number of entries in each list at most."""
    cut = len(text) > TEXT_MAX_CHARS
    read = whole_words(text[:TEXT_MAX_CHARS]) if cut else text
    plain = patterns.SURROGATE.sub(
        "\ufffd", read.replace("\r\n", "\n").replace("\r", "\n").replace(_GAP, " ")
    )
    plain, invisible = patterns.INVISIBLE.subn("", plain)
    cleaned = cleaner.clean(plain, limit_bytes=_ANY_BYTES)
    found = _Findings()
    words = Words(
        patterns.FOUND.sub(found.note, _with_gaps(plain, cleaned.value) if cleaned.hidden else plain)
    )
    entities = {"name": words.names, **{kind: found.counts[kind] for kind in patterns.ENTITIES}}
    return ShownTextSummary(
        characters=len(text),
        size_bytes=len(text.encode("utf-8", "surrogatepass")),
        lines=plain.count("\n") + (plain[-1:] not in ("", "\n")),
        paragraphs=sum(1 for _ in patterns.PARAGRAPH.finditer(plain.strip())) + bool(plain.strip()),
        sentences=words.sentences,
        words=words.count,
        distinct_words=words.distinct,
        ngrams={size: words.ngrams(size, top) for size in _NGRAMS},
        entities=_by_kind(entities, top),
        numbers=found.numbers(),
        urls=_found(found.counts["url"], top),
        hosts=_found(found.counts["host"], top),
        citations=_by_kind({kind: found.counts[kind] for kind in patterns.CITATIONS}, top),
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
        """Count a match; return what the words of the text are read from in its place."""
        kind, text = str(match.lastgroup).rstrip("23"), match[0]
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
        self.counts[kind][text[:_SHOWN_CHARS]] += 1
        return _GAP if kind in patterns.NO_WORDS else match[0]

    def numbers(self) -> Numbers:
        """Return the range of all numbers."""
        values = self._values
        if not values:
            return Numbers()
        mean = math.fsum(value / len(values) for value in values)
        return Numbers(len(values), len(set(values)), min(values), max(values), float(f"{mean:.12g}"))


def _trimmed(url: str) -> str:
    """Return a URL without the signs that belong to the sentence around it."""
    while url and (
        url[-1] in patterns.URL_END
        or (url[-1] in ")]" and url.count(url[-1]) > url.count("(["[")]".index(url[-1])]))
    ):
        url = url[:-1]
    return url


def _host(url: str) -> str:
    try:
        host = urlsplit(url if "://" in url else f"//{url}").hostname
    except ValueError:  # brackets that hold no address
        host = None
    return (host or "?")[:_SHOWN_CHARS]


def _with_gaps(text: str, cleaned: str) -> str:
    """Return the cleaned text with gaps for what was hidden; what looks like that and was in the text is left."""
    for mark in sorted(set(patterns.HIDDEN.findall(cleaned))):
        if cleaned.count(mark) > text.count(mark):
            cleaned = cleaned.replace(mark, _GAP)
    return cleaned


def _found(counts: Counter[str], top: int) -> Found:
    """Return the counts with the most frequent first; those of one count in the order of the text."""
    return Found(counts.total(), len(counts), tuple(Counted(*entry) for entry in counts.most_common(top)))


def _by_kind(counts: Mapping[str, Counter[str]], top: int) -> dict[str, Found]:
    return {kind: _found(counted, top) for kind, counted in counts.items() if counted}
