"""Names of columns: which a chooser may be told.

A column's name may be data: after a pivot it is a value of another column. So a name is told only if it cannot be new
data. Of the caller's frames these are plain names that no cell and no row label holds as a value, in any case, with any
accents, or in a list; and not those of frames that look pivoted or transposed. Of a result they are

- names that its input views tell, and names that the choice itself gives, where a built-in operation made it: only
  `pivot_rows` makes names of cells;
- else names of the caller's frames, and words of the tool's code or of a short choice that no input holds as a value or
  hides as a name.

Any other column is told by its number. Whether a name that the chooser invents is told must not depend on the data in
bulk: a chooser would learn which of its guesses exist.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from healkit.sanitizer.cleaner import Cleaner

#: Form of a plain name: words of letters, short numbers at the end of a word, the usual signs between them.
_NAME = re.compile(r"[^\W\d]+\d{0,2}(?:[ _.\-/:()%]{1,2}(?:[^\W\d_]+\d{0,2}|\d{1,2}))*[ )%]?")
_NAME_MAX_CHARS = 64
#: What a join adds to a name that both sides have.
_SUFFIX = re.compile(r"_[^\W\d_]+\d{0,2}")
#: Name that a query of SQL gives to a column.
_ALIAS = re.compile(r"""\bAS\s+(?:"([^"]{1,64})"|(\w{1,64}))""", re.IGNORECASE)
_DATES = re.compile(r"\b\d{1,4}[-/.:]\d{1,2}\b")
#: Words of one choice that may name columns of a tool of your own: each tells whether it is there.
CHOICE_WORDS_MAX = 20


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


def words_of_choice(params: Mapping[str, Any], naming: Iterable[str] | None) -> set[str]:
    """Return the words of a choice that may name columns.

    naming: the parameters of a built-in operation that hold names of columns, `query` for one in SQL; None for another
    tool, of which a long choice gives only the texts that are parameters themselves.
    """
    if naming is not None:
        words = set(words_of([params[name] for name in naming if name in params and name != "query"]))
        if "query" in naming and isinstance(query := params.get("query"), str):
            words.update(quoted or bare for quoted, bare in _ALIAS.findall(query))
        return words
    words = set(words_of(list(params.values())))
    if len(words) <= CHOICE_WORDS_MAX:
        return words
    return {value for value in params.values() if isinstance(value, str)}


def folded(text: str) -> str:
    """Return a text without case, accents, signs and spaces."""
    if text.isascii():
        plain = text.casefold()
    else:
        parts = unicodedata.normalize("NFKD", text).casefold()
        plain = "".join(letter for letter in parts if not unicodedata.combining(letter))
    return plain if plain.isalnum() else "".join(letter for letter in plain if letter.isalnum())


def look_like_cells(frame: pd.DataFrame) -> set[Any]:
    """Return the labels of a frame that its form says are cells: of a pivot, a transposed frame, or dummies."""
    index = frame.index
    is_transposed = (
        not isinstance(index, pd.MultiIndex)
        and index.name is None
        and len(index) > 0
        and pd.api.types.infer_dtype(index) == "string"
    )
    if is_transposed or any(name is not None for name in frame.columns.names):
        return set(frame.columns)
    dummies: dict[str, list[int]] = {}
    for position, label in enumerate(frame.columns):
        if isinstance(label, str) and _is_dummy(frame.iloc[:, position]):
            prefix = label.rpartition("_")[0] if "_" in label else ""
            dummies.setdefault(prefix, []).append(position)
    found: set[Any] = set()
    for positions in dummies.values():
        if len(positions) > 1:
            sums = frame.iloc[:, positions].sum(axis=1)
            if bool((sums <= 1).all()) and bool((sums == 1).any()):
                found |= {frame.columns[position] for position in positions}
    return found


def _is_dummy(column: pd.Series[Any]) -> bool:
    dtype = str(column.dtype).removesuffix("[pyarrow]").lower()
    if dtype in ("bool", "boolean"):
        return True
    return dtype in ("uint8", "int8", "int64") and len(column) > 1 and bool(column.isin([0, 1]).all())


class KnownNames:
    """Names of the caller's frames that a chooser may be told, and what stands behind numbers."""

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._told: set[str] = set()
        self._behind: dict[str, Any] = {}

    def admit(self, labels: Iterable[Any], values: set[Any]) -> None:
        """Take the labels of the caller's frames; `values` are those labels that are values too."""
        self._told |= self.clean(label for label in labels if looks_plain(label) and label not in values)

    def share(self, labels: Iterable[str]) -> None:
        """Take labels that the caller names in telling which columns are shared."""
        self._told |= set(labels)

    def clean(self, labels: Iterable[str]) -> set[str]:
        """Return the labels in which the sanitiser finds nothing."""
        plain = list(labels)
        clean = self._cleaner.clean(plain, limit_bytes=1 << 24).value
        if not isinstance(clean, list) or len(clean) != len(plain):
            return set()
        return {label for label, left in zip(plain, clean, strict=True) if label == left}

    def of_operation(
        self, labels: Iterable[Any], inputs: set[str], hidden: set[str], words: set[str], code: str
    ) -> set[str]:
        """Return the labels to tell of a result of a built-in operation that makes no names of cells.

        inputs, hidden: what its input views tell, and what they number.
        """
        texts = {label for label in labels if isinstance(label, str)}
        written = words_in_code(code) - hidden
        return texts & (inputs | self.clean(words) | written) | joined(texts, inputs, written | words)

    def of_tool(self, labels: Iterable[Any], words: set[str], code: str, values: set[Any]) -> set[str]:
        """Return the labels to tell of a result of any other tool; values: labels that are values or hidden names."""
        texts = {label for label in labels if isinstance(label, str)}
        written = words_in_code(code)
        plain = (texts & (written | words)) | joined(texts, self._told, written | words)
        return (texts & self._told) | self.clean(
            label for label in plain if label not in values and (looks_plain(label) or label in words)
        )

    def knows(self, label: Any) -> bool:
        """Return True if the chooser may be told this name of a caller's column."""
        return isinstance(label, str) and label in self._told

    def number(self, view_name: str, position: int, label: Any) -> str:
        """Return the name that stands for a column in place of its own; position counts from 1."""
        return self.stand_in(f"{view_name}#{position}", label)

    def stand_in(self, alias: str, value: Any) -> str:
        """Let a name of ours stand for a value; return the name."""
        self._behind[alias] = value
        return alias

    def is_stand_in(self, word: Any) -> bool:
        """Return True for a name that stands for a column or a value."""
        return isinstance(word, str) and word in self._behind

    def restored(self, value: Any) -> Any:
        """Return a choice's JSON value with columns and values themselves in place of what stands for them."""
        if isinstance(value, str):
            return self._behind.get(value, value)
        if isinstance(value, list):
            return [self.restored(inner) for inner in value]
        if isinstance(value, dict):
            return {self.restored(key): self.restored(inner) for key, inner in value.items()}
        return value


def joined(labels: set[str], known: set[str], written: set[str]) -> set[str]:
    """Return the labels that are a known name with a suffix that is written too, such as `price_right`."""
    suffixes = tuple(filter(_SUFFIX.fullmatch, written))
    return {
        label
        for label in labels
        for suffix in suffixes
        if label.endswith(suffix) and label.removesuffix(suffix) in known
    }
