"""Cards of summaries, and summaries that show themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from healkit.core.rendering.document import Card, Cell, Facts, Line, Part, Span, Table
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.parts.decide.summary_records import (
    Bound,
    ColumnSummary,
    Counted,
    FoundThings,
    FrameSummary,
    TextSummary,
)
from healkit.plain_text import count, one_line

_SHOWN = 5
_VALUE_CHARS = 40
#: A value of up to that many characters stays on one line with its count: the column beside eight others is narrow.
_UNBROKEN_CHARS = 14
_NGRAMS = {1: "words", 2: "two words", 3: "three words"}
_ENTITIES = {
    "name": "names", "email": "email addresses", "mention": "mentions", "hashtag": "hashtags", "date": "dates",
    "time": "times", "money": "money", "percent": "percentages",
}  # fmt: skip
_CITATIONS = {
    "author_year": "author and year", "number_in_brackets": "numbers in brackets", "key": "keys", "doi": "DOI",
    "arxiv": "arXiv",
}  # fmt: skip
_COLUMNS = ("column", "type", "nulls", "distinct", "min", "median", "max", "mean", "most frequent")


def summary_card(summary: TextSummary | FrameSummary) -> Card:
    """Build the card of a summary."""
    return _text_card(summary) if isinstance(summary, TextSummary) else _frame_card(summary)


def _text(summary: TextSummary | FrameSummary) -> str:
    return text_of(summary_card(summary))


def _bundle(summary: TextSummary | FrameSummary, **_: object) -> dict[str, str]:
    """Return the card as text and HTML; called by IPython's display formatter."""
    return {"text/plain": _text(summary), "text/html": html_of(summary_card(summary))}


def _json(summary: TextSummary | FrameSummary) -> str:
    """Return the summary as JSON; the same value always has the same text."""
    return msgspec.json.encode(summary).decode()


class ShownTextSummary(TextSummary, frozen=True):
    """Summary of a text that a notebook shows as a card; `hk.summarize` returns these."""

    to_json = _json
    __str__ = _text
    _repr_mimebundle_ = _bundle


class ShownFrameSummary(FrameSummary, frozen=True):
    """Summary of a frame that a notebook shows as a card; `hk.summarize` returns these."""

    to_json = _json
    __str__ = _text
    _repr_mimebundle_ = _bundle


def _text_card(summary: TextSummary) -> Card:
    title = f"Text: {count(summary.words, 'word')}, {count(summary.sentences, 'sentence')}"
    facts = [
        ("characters", f"{summary.characters:,} ({count(summary.size_bytes, 'byte')} in UTF-8)"),
        ("lines", f"{summary.lines:,} in {count(summary.paragraphs, 'paragraph')}"),
        ("words", f"{summary.words:,}, {summary.distinct_words:,} distinct"),
        ("numbers", _numbers(summary)),
    ]
    if summary.hidden:
        facts.append(("hidden", ", ".join(f"{rule} {times:,}" for rule, times in summary.hidden.items())))
    if summary.invisible:
        facts.append(("left out", count(summary.invisible, "invisible character")))
    parts: list[Part] = [Facts(facts)]
    rows = [_row(_NGRAMS[size], tally) for size, tally in summary.ngrams.items() if tally.top]
    rows += _rows(summary.entities, _ENTITIES)
    rows += [
        _row(name, tally) for name, tally in (("URLs", summary.urls), ("hosts", summary.hosts)) if tally.count
    ]
    rows += _rows(summary.citations, _CITATIONS, "cited: ")
    if rows:
        parts.append(
            Table(("found", "all", "distinct", "most frequent"), rows, cut="most frequent", indent=2)
        )
    if summary.cut:
        parts.append(
            Line("Only the beginning of the text was read, because it is longer than the limit.", "warn")
        )
    return Card(title, tone="info", parts=parts)


def _numbers(summary: TextSummary) -> str:
    numbers = summary.numbers
    if not numbers.count:
        return "none"
    between = f"{_value(numbers.min)} to {_value(numbers.max)}, mean {_value(numbers.mean)}"
    return f"{numbers.count:,}, {numbers.distinct:,} distinct, {between}"


def _rows(
    kinds: Mapping[str, FoundThings], names: Mapping[str, str], before: str = ""
) -> list[tuple[str, ...]]:
    return [_row(before + names[kind], tally) for kind, tally in kinds.items()]


def _row(name: str, found: FoundThings) -> tuple[str, ...]:
    return name, f"{found.count:,}", f"{found.distinct:,}", _top(found.top)


def _top(entries: Sequence[Counted]) -> str:
    return ", ".join(f"{one_line(entry.text, _VALUE_CHARS)} ×{entry.count:,}" for entry in entries[:_SHOWN])


def _frame_card(summary: FrameSummary) -> Card:
    shape = " × ".join(f"{size:,}" for size in summary.shape) or "one value"
    parts: list[Part] = [Facts((("nulls", f"{summary.nulls:,}"),))]
    if summary.columns:
        parts.append(
            Table(_COLUMNS, [_column(column) for column in summary.columns], cut="most frequent", indent=2)
        )
    if summary.left_out:
        parts.append(Line(f"{count(summary.left_out, 'more column')} not summarised.", "quiet"))
    return Card(f"{summary.kind}: {shape}", tone="info", parts=parts)


def _frequent(entries: Sequence[Counted]) -> Cell:
    if not entries or any(len(entry.text) > _UNBROKEN_CHARS for entry in entries[:_SHOWN]):
        return _top(entries)
    words: list[str | Span] = []
    for entry in entries[:_SHOWN]:
        words += [Span(_top([entry]), "unbroken"), ", "]
    return (Line(tuple(words[:-1]), "bare"),)


def _column(column: ColumnSummary) -> tuple[Cell, ...]:
    if column.min_chars is not None:
        low, high = count(column.min_chars, "char"), count(column.max_chars or 0, "char")
    else:
        low, high = _value(column.min), _value(column.max)
    frequent = _frequent(column.top or column.types)
    distinct = "–" if column.distinct is None else f"{column.distinct:,}"
    return (
        column.name, column.dtype, f"{column.nulls:,}", distinct, low, _value(column.median), high,
        _value(column.mean), frequent,
    )  # fmt: skip


def _value(value: Bound) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}" if value.bit_length() < 64 else f"{value:.6g}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:,.6g}"
    return one_line(str(value), _VALUE_CHARS)
