"""Metadata of views: counts and types, no values.

Types come from a closed list: the text of a dtype can hold data, such as the field names of a struct.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pandas as pd

from healkit.contracts.decisions import ColumnFacts, TextFacts, ViewFacts
from healkit.contracts.encoding import is_from_library
from healkit.decisions.labels import KnownNames, folded, words_of
from healkit.sanitizer.cleaner import Cleaner

#: Columns of a view that are listed, and distinct values of a shared column.
COLUMNS_MAX, VALUES_MAX = 200, 100
#: Rows from which columns are counted in threads, and the most threads: each may hold a table of distinct values.
THREADS_FROM_ROWS, THREADS_MAX = 200_000, 4
_KINDS = ("period", "interval", "Sparse", "list", "struct", "decimal")
_DTYPE = re.compile(
    r"(u?int\d{1,2}|float\d{1,3}|complex\d{1,3}|bool|boolean|object|str|string|category|double|halffloat|float|date32|date64|time32|time64|timestamp|duration|binary|null)"
    r"|(datetime64|timedelta64)\[(s|ms|us|ns)\]",
    re.IGNORECASE,
)

#: Nulls of a column, and its distinct values; None where they cannot be compared.
Counts = tuple[int, int | None]


def as_frame(value: Any) -> pd.DataFrame | None:
    """Return a table of any library as a DataFrame, for its facts; None for what is no table."""
    if isinstance(value, pd.DataFrame):
        return value
    if isinstance(value, pd.Series):
        return value.to_frame()
    package = type(value).__module__.partition(".")[0]
    try:
        if package == "polars" and hasattr(value, "to_arrow"):
            value, package = value.to_arrow(), "pyarrow"
        if package != "pyarrow" or not hasattr(value, "to_pandas"):
            return None
        # In Arrow's own types: nothing is converted, which would take memory, and fails for some values.
        found = value.to_pandas(types_mapper=_dtype_of)
        return found if isinstance(found, pd.DataFrame) else pd.DataFrame(found)
    except BaseException as error:  # a worker's table need not be one that can be read
        if not is_from_library(error):
            raise
        return None


def _dtype_of(kind: Any) -> Any:
    """Return pandas' dtype of an Arrow type; None for texts as a dictionary, which pandas has as a category."""
    texts = {"string", "large_string"}
    is_category = str(kind).startswith("dictionary") and str(kind.value_type) in texts
    return None if is_category else pd.ArrowDtype(kind)


def dtype_word(dtype: Any) -> str:
    """Return a word of a closed list for a dtype."""
    text = str(dtype)
    if text.endswith("[pyarrow]"):
        text = text.partition("[")[0].partition("<")[0].removeprefix("large_")
        text = "category" if text == "dictionary" else text
    if _DTYPE.fullmatch(text):
        return text
    if text.startswith("datetime64"):
        return "datetime64, with time zone"
    return next((word for word in _KINDS if text.startswith(word)), "other")


def is_text(column: pd.Series[Any]) -> bool:
    """Return True for a column that may hold texts."""
    dtype = column.dtype
    may_be = (pd.api.types.is_object_dtype, pd.api.types.is_string_dtype)
    return isinstance(dtype, pd.CategoricalDtype) or any(is_so(dtype) for is_so in may_be)


def distinct_values(column: pd.Series[Any]) -> list[Any] | None:
    """Return the distinct values without nulls; None where they cannot be compared."""
    try:
        return column.drop_duplicates().dropna().tolist()
    except (TypeError, NotImplementedError):
        return None


def values_among(frames: Iterable[pd.DataFrame], words: Collection[Any]) -> set[Any]:
    """Return those words that the frames hold as a value: in a cell, in a list in one, or as a row's label.

    Case, accents and signs make no difference. Of a word such as `name_Smith` the part after the first sign counts too.
    """
    by_form: dict[str, set[str]] = {}
    for word in words:
        if isinstance(word, str):
            for form in {folded(word), folded(word.partition("_")[2])} - {""}:
                by_form.setdefault(form, set()).add(word)
    found: set[Any] = set()
    left = set(by_form)
    for values in _texts_in(frames):
        if not left:
            break
        held = left.intersection(map(folded, values))
        found.update(*(by_form[form] for form in held))
        left -= held
    return found


def _texts_in(frames: Iterable[pd.DataFrame]) -> Iterator[Iterable[str]]:
    """Yield the texts of each column and of the row labels, also those within lists and dicts."""
    for frame in frames:
        for level in range(frame.index.nlevels):
            values = frame.index.get_level_values(level)
            if not pd.api.types.is_numeric_dtype(values.dtype):
                yield (value for value in values.unique() if isinstance(value, str))
        for position in range(len(frame.columns)):
            column = frame.iloc[:, position]
            if isinstance(column.dtype, pd.CategoricalDtype):
                yield (value for value in column.cat.categories if isinstance(value, str))
            elif is_text(column):
                distinct = distinct_values(column)
                yield words_of(column.tolist() if distinct is None else distinct)
            elif str(column.dtype).startswith(("list", "struct", "large_list", "fixed_size_list", "map")):
                yield words_of(column.tolist())


def facts_of(
    name: str,
    frame: pd.DataFrame,
    names: KnownNames,
    told_labels: Collection[Any] | None = None,
    shared: Mapping[Any, list[Any]] | None = None,
    counts: Sequence[Counts] | None = None,
) -> ViewFacts:
    """Return the facts on a view: its counts as they are, and names and values that a chooser may be told.

    told_labels: by default those that `names` knows. shared: values of shared columns by label. counts: those of
    `counts_of`, where they are known already.
    """
    columns = []
    seen: set[Any] = set()
    shared = shared or {}
    for position, (nulls, distinct) in enumerate(counts_of(frame) if counts is None else counts):
        label, column = frame.columns[position], frame.iloc[:, position]
        told = (names.knows(label) if told_labels is None else label in told_labels) and label not in seen
        seen.add(label)
        columns.append(
            ColumnFacts(
                name=label if told else names.number(name, position + 1, label),
                dtype=dtype_word(column.dtype),
                nulls=nulls,
                distinct=distinct,
                numbered=not told,
                values=shared.get(label) if told and isinstance(label, str) else None,
            )
        )
    left_out = len(frame.columns) - len(columns)
    numbered = sum(column.numbered for column in columns)
    return ViewFacts(name, len(frame), len(frame.columns), columns, left_out, numbered)


def texts_of(value: Any) -> list[str] | None:
    """Return a text, or a list of texts, as a list; None for anything else."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value):
        return list(value)
    return None


def text_facts(texts: Sequence[str], cleaner: Cleaner, *, is_shared: bool = False) -> TextFacts:
    """Count what is in texts; is_shared: whether the most frequent words, n-grams and entities may be told."""
    from healkit.summaries import TOP
    from healkit.summaries.texts import summary_of

    found = summary_of("\n\n".join(texts), cleaner, TOP)
    listed = {
        **{f"{size} words" if size > 1 else "words": ngrams for size, ngrams in found.ngrams.items()},
        **found.entities,
        **found.citations,
    }
    words = {kind: [one.text for one in about.top] for kind, about in listed.items() if about.top}
    return TextFacts(
        texts=len(texts),
        characters=sum(map(len, texts)),
        words=found.words,
        distinct_words=found.distinct_words,
        sentences=found.sentences,
        paragraphs=found.paragraphs,
        numbers=found.numbers.count,
        urls=found.urls.count,
        entities={kind: about.count for kind, about in found.entities.items() if about.count},
        citations={kind: about.count for kind, about in found.citations.items() if about.count},
        most_frequent=words if is_shared else None,
    )


def counts_of(frame: pd.DataFrame) -> list[Counts]:
    """Count each listed column; those of a long frame in threads, as pandas counts without the GIL."""
    columns = [frame.iloc[:, position] for position in range(min(len(frame.columns), COLUMNS_MAX))]
    if len(frame) < THREADS_FROM_ROWS:
        return [_count(column) for column in columns]
    with ThreadPoolExecutor(min(THREADS_MAX, os.cpu_count() or 1)) as pool:
        return list(pool.map(_count, columns))


def _count(column: pd.Series[Any]) -> Counts:
    nulls = int(column.isna().sum())
    try:
        return nulls, int(column.nunique())
    except Exception:  # noqa: BLE001 - values of any class, and those of Arrow that pandas has no class for
        return nulls, None


def shared_values(column: pd.Series[Any], cleaner: Cleaner) -> list[Any]:
    """Return the distinct values of a shared column, without what the sanitiser hides."""
    found = distinct_values(column) or []
    plain = [
        value if isinstance(value, str | bool | int | float) else str(value) for value in found[:VALUES_MAX]
    ]
    cleaned = cleaner.clean(plain, limit_bytes=1 << 20).value
    return cleaned if isinstance(cleaned, list) else []
