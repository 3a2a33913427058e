"""Names of columns: which a chooser may be told.

A column's name may be data: after a pivot it is a value of another column. A name is told only if it cannot be new
data: it is a plain name of the caller's own frames that no text column there holds as a value, a word of the chooser's
own choices, or a word in the tool's code or in a query that none of its frames holds as a value (alone, or as the
suffix of a name that is told already). Any other column is told by its number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

from healkit.sanitizer.cleaner import Cleaner

#: Form of a plain name: words of letters, short numbers at the end of a word, the usual signs between them.
_NAME = re.compile(r"[^\W\d]+\d{0,2}(?:[ _.\-/:()%]{1,2}(?:[^\W\d_]+\d{0,2}|\d{1,2}))*[ )%]?")
_NAME_MAX_CHARS = 64
#: What a join adds to a name that both sides have.
_SUFFIX = re.compile(r"_[^\W\d_]+\d{0,2}")
#: Name within a longer text of a choice, such as a query of SQL.
_WORD = re.compile(r"[^\W\d]\w*")
_DATES = re.compile(r"\b\d{1,4}[-/.:]\d{1,2}\b")


def looks_plain(label: Any) -> bool:
    """Return True for a text that has the form of a name."""
    if not isinstance(label, str) or not 0 < len(label) <= _NAME_MAX_CHARS or _DATES.search(label):
        return False
    return _NAME.fullmatch(label) is not None


def words_of(value: Any) -> Iterator[str]:
    """Yield every text in JSON data, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from words_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from words_of(inner)


def words_in_code(code: str) -> set[str]:
    """Return the texts and names that stand in a tool's code; none for code that is not Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return found | {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}


class KnownNames:
    """Names that a chooser may be told, and the columns that stand behind numbers."""

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._told: set[str] = set()
        self._own: set[str] = set()
        self._written: set[str] = set()
        self._behind: dict[str, Any] = {}

    def admit(self, labels: Iterable[Any], values: set[Any]) -> None:
        """Take the labels of the caller's frames; `values` are those labels that a column holds as a value."""
        plain = [label for label in labels if looks_plain(label) and label not in values]
        clean = self._cleaner.clean(plain, limit_bytes=1 << 24).value
        if isinstance(clean, list) and len(clean) == len(plain):
            self._told |= {label for label, left in zip(plain, clean, strict=True) if label == left}

    def hear(self, choice: Any) -> None:
        """Take the words of a chooser's choice; they are no news to it."""
        texts = set(words_of(choice))
        self._own |= texts
        self._written.update(word for text in texts for word in _WORD.findall(text))

    def admit_result(self, labels: Iterable[Any], code: str, values: set[Any]) -> None:
        """Take those labels of a result that stand in the tool's code or in a query, and are no value of its frames.

        A known name with a suffix that stands there too, such as `price_right` after a join, is as good as written.
        """
        written = words_in_code(code) | self._written
        suffixes = tuple(filter(_SUFFIX.fullmatch, written))
        texts = {label for label in labels if isinstance(label, str)}
        joined = {
            text
            for text in texts
            for suffix in suffixes
            if text.endswith(suffix) and self.knows(text.removesuffix(suffix))
        }
        self.admit((texts & written) | joined, values)

    def knows(self, label: Any) -> bool:
        """Return True if the chooser may be told this name."""
        return isinstance(label, str) and (label in self._told or label in self._own)

    def number(self, view_name: str, position: int, label: Any) -> str:
        """Return the name that stands for a column in place of its own; position counts from 1."""
        alias = f"{view_name}#{position}"
        self._behind[alias] = label
        return alias

    def restored(self, value: Any) -> Any:
        """Return a choice's JSON value with the columns themselves in place of their numbers."""
        if isinstance(value, str):
            return self._behind.get(value, value)
        if isinstance(value, list):
            return [self.restored(inner) for inner in value]
        if isinstance(value, dict):
            return {self.restored(key): self.restored(inner) for key, inner in value.items()}
        return value
