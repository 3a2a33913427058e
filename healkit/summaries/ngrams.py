"""Words of a text: sentences, names, and n-grams.

Each distinct word has a number, and an n-gram is one integer made of such numbers. So all n-grams of millions of words
are counted exactly by one sort of an array, where a dict of their texts would take gigabytes.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections import Counter

import numpy as np

from healkit.contracts.data import Counted, Found
from healkit.summaries.patterns import ABBREVIATIONS, CJK, CONNECTORS, SENTENCE_END, STOP_WORDS, WORD

#: A longer word is counted but is part of no n-gram: it is data rather than language.
WORD_MAX_CHARS = 100
#: A longer row of capitalised words is a heading rather than a name.
NAME_MAX_WORDS = 6
#: Number that stands between words that no n-gram may join.
_BREAK = 0


class Words:
    """Words of a text, read in one pass.

    count: all words. distinct: the different ones, whatever their case. names: rows of capitalised words.
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
        """Number of different words, whatever their case."""
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

    def ngrams(self, size: int, top: int) -> Found:
        """Return the n-grams of so many words that neither begin nor end with a stop word.

        Of two and more words, those that occur once are counted but not listed.
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
        return Found(len(places), len(counts), tuple(entries))

    def _text(self, numbers: list[int]) -> str:
        words = [self._words[number] for number in numbers]
        return ("" if all(map(CJK.fullmatch, words)) else " ").join(words)


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the smallest values, in order."""
    found = np.arange(len(values)) if len(values) <= count else np.argpartition(values, count)[:count]
    return found[np.argsort(values[found])]


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
