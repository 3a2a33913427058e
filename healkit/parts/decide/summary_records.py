"""Summaries of texts and frames, as frozen data."""

from __future__ import annotations

import msgspec

#: Least or greatest value of a column: a number, or the ISO text of a day, a time or a duration.
Bound = int | float | str | None


class Counted(msgspec.Struct, frozen=True):
    """Text that was found, and how often."""

    text: str
    count: int


class FoundThings(msgspec.Struct, frozen=True):
    """Things of one kind: all of them, the distinct ones, and the most frequent ones first."""

    count: int = 0
    distinct: int = 0
    top: tuple[Counted, ...] = ()


class Numbers(msgspec.Struct, frozen=True):
    """Numbers of a text, with their range; None where there are none."""

    count: int = 0
    distinct: int = 0
    min: float | None = None
    max: float | None = None
    mean: float | None = None


class TextSummary(msgspec.Struct, frozen=True):
    """Summary of a text.

    ngrams: By their number of words, 1 to 3.
    entities: By kind, such as `name` or `date`.
    citations: By kind, such as `doi`.
    hidden: How often each rule of the sanitiser hid something; the other fields do not contain it.
    invisible: How many characters of zero width were left out.
    cut: The text is longer than the part that was read.
    """

    characters: int
    size_bytes: int
    lines: int
    paragraphs: int
    sentences: int
    words: int
    distinct_words: int
    ngrams: dict[int, FoundThings]
    entities: dict[str, FoundThings]
    numbers: Numbers
    urls: FoundThings
    hosts: FoundThings
    citations: dict[str, FoundThings]
    hidden: dict[str, int]
    invisible: int = 0
    cut: bool = False


class ColumnSummary(msgspec.Struct, frozen=True):
    """Summary of a column.

    distinct: None for values that cannot be compared.
    min, max: The range of numbers, days, times and durations; `mean` to `q75` are only for numbers.
    min_chars, max_chars: Lengths of texts.
    top: The most frequent texts, categories or truth values.
    types: The classes of Python objects.
    """

    name: str
    dtype: str
    nulls: int
    distinct: int | None = None
    min: Bound = None
    max: Bound = None
    mean: float | None = None
    std: float | None = None
    q25: float | None = None
    median: float | None = None
    q75: float | None = None
    min_chars: int | None = None
    max_chars: int | None = None
    top: tuple[Counted, ...] = ()
    types: tuple[Counted, ...] = ()


class FrameSummary(msgspec.Struct, frozen=True):
    """Summary of a frame or an array.

    kind: Its class, such as `pandas.DataFrame`.
    nulls: Nulls in the listed columns.
    left_out: How many columns are not listed.
    """

    kind: str
    shape: tuple[int, ...]
    nulls: int
    columns: tuple[ColumnSummary, ...]
    left_out: int = 0
