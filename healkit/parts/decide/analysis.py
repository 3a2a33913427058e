"""Analysis of a result: a model's words, code's numbers.

The model gets a `Turn`, like a chooser, and writes references in place of numbers: `{sum(by_region.sales)}`,
`{count(by_region)}`, `{max(a.x) > max(b.x)}`. Code fills them in from the views for the reader; the model never sees
the values. A sentence is struck out, and listed, in three cases. It has its own number, it has a comparison that code
did not make, or its reference matches no view. Other words are not checked, hence the label.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import pandas as pd

from healkit.core.secrets.cleaner import Cleaner
from healkit.errors import HealkitError
from healkit.parts.decide.asked import Analyst, HeldView
from healkit.parts.decide.choosers import ModelQuestions, prompts
from healkit.parts.decide.records import Turn
from healkit.parts.decide.telling import KnownNames
from healkit.plain_text import count

#: Length of an analysis; the rest is cut.
TEXT_MAX_CHARS = 20_000
_REFERENCE = re.compile(r"\{([^{}\n]{1,400})\}")
_AGGREGATE = re.compile(r"\s*([a-z]+)\((\w{1,64})(?:\.(.{1,300}))?\)\s*")
_COMPARISON = re.compile(r"(.+\))\s*(<=|>=|==|!=|<|>)\s*([a-z]+\(.+)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
#: Mark that stands for a reference while sentences are looked at: its number between two of a private character.
_MARK = re.compile("\ue000(\\d+)\ue000")
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_AGGREGATES: dict[str, Callable[[pd.Series[Any]], Any]] = {
    "count": lambda column: int(column.count()),
    "distinct": lambda column: int(column.nunique()),
    "nulls": lambda column: int(column.isna().sum()),
    **{name: operator.methodcaller(name) for name in ("sum", "mean", "median", "min", "max")},
}
#: Words that state a number, and signs that do.
_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands "
    "million millions billion billions dozen dozens half halves quarter quarters third thirds twice thrice double "
    "doubled triple tripled percent percentage"
)
_NUMBER_WORDS = frozenset(_NUMBERS.split())
_NUMBER_SIGNS = re.compile(r"[%‰{}]|\bper cent\b", re.IGNORECASE)
#: Words that state a comparison or a trend: stems, each with all of the endings ("-" for none).
_COMPARING_STEMS = (
    ("more less fewer most least fewest than better best worse worst", "-"),
    ("rose growth majority minority top same similar", "-"),
    ("high low great larg bigg small long short fast slow old young earli lat strong weak", "er est"),
    ("increas decreas declin", "e es ed ing"),
    ("ris", "e es en ing"),
    ("fall fell grow grew", "- s n en ing"),
    ("drop exceed lead equal outlier trend", "- s ed ped ly"),
    ("correlat", "e es ed ing ion ions ive"),
)
_COMPARING_WORDS = frozenset(
    stem + ending.removeprefix("-")
    for stems, endings in _COMPARING_STEMS
    for stem in stems.split()
    for ending in endings.split()
)


class ModelAnalyst(ModelQuestions):
    """Analyst that asks the configured model; the model gets only what `told(turn)` returns."""

    name = "model"

    def write(self, turn: Turn) -> str:
        """Return the model's text."""
        return self.ask(prompts()["analyst"], turn).text


class Analysis(NamedTuple):
    """Text for the reader, the claims that were struck out, and the number of references filled in."""

    text: str = ""
    struck: tuple[str, ...] = ()
    filled: int = 0


def fill(text: str, views: Mapping[str, HeldView], names: KnownNames, cleaner: Cleaner) -> Analysis:
    """Return the text with each reference filled in, and each sentence with other claims struck out."""
    filled: list[_Filled] = []

    def take(match: re.Match[str]) -> str:
        filled.append(_filled(match[0], views, names, cleaner))
        return f"\ue000{len(filled) - 1}\ue000"

    marked = _REFERENCE.sub(take, text.replace("\ue000", " ").strip())
    words = _words_of(views)
    struck: list[str] = []

    def shown(sentence: str) -> str:
        references = [filled[int(place)] for place in _MARK.findall(sentence)]
        bare = _without(words, _MARK.sub(" ", sentence))
        wrong = not all(reference.holds for reference in references) or _claims(
            bare, any(reference.compares for reference in references)
        )
        whole = _MARK.sub(lambda place: filled[int(place[1])].text, sentence)
        if wrong:
            struck.append(whole)
        return f"~~{whole}~~" if wrong else whole

    pieces = re.split(f"({_SENTENCE.pattern})", marked)
    result = "".join(shown(piece) if piece.strip() else piece for piece in pieces)
    if struck:
        result += f"\n\nStruck out, because code could not verify it: {count(len(struck), 'sentence')}."
    return Analysis(result, tuple(struck), sum(reference.holds for reference in filled))


def analyse(
    analyst: Analyst, turn: Turn, views: Mapping[str, HeldView], names: KnownNames, cleaner: Cleaner
) -> tuple[Analysis, str]:
    """Ask for the analysis; return it, or why it failed: the result does not depend on it."""
    try:
        written = analyst.write(turn)
    except HealkitError as error:
        return Analysis(), f"There is no analysis ({error.code}): {error.message}"
    except KeyboardInterrupt:
        return Analysis(), "There is no analysis: it was interrupted."
    return fill(str(written or "")[:TEXT_MAX_CHARS], views, names, cleaner), ""


def _claims(bare: str, compares: bool) -> bool:
    """Return True for a sentence that, without its references and names, states a number or a comparison."""
    words = set(re.findall(r"\w+", bare.lower()))
    if words & _NUMBER_WORDS or _NUMBER_SIGNS.search(bare) or any(letter.isnumeric() for letter in bare):
        return True
    return not compares and not words.isdisjoint(_COMPARING_WORDS)


def _words_of(views: Mapping[str, HeldView]) -> list[str]:
    """Return the names of views and columns that a chooser gets, longest first; only those with letters."""
    columns = {column.name for view in views.values() for column in view.facts.columns}
    words = {name for name in (*views, *columns) if any(letter.isalpha() for letter in name)}
    return sorted(words, key=len, reverse=True)


def _without(known: list[str], sentence: str) -> str:
    if not known:
        return sentence
    return re.sub(rf"(?<!\w)(?:{'|'.join(map(re.escape, known))})(?!\w)", " ", sentence)


class _Filled(NamedTuple):
    """Reference with its replacement; `holds` is false if the replacement is the reference itself."""

    text: str
    holds: bool
    compares: bool = False


def _filled(written: str, views: Mapping[str, HeldView], names: KnownNames, cleaner: Cleaner) -> _Filled:
    """Return a reference filled in, if it matches a view, and is true if it compares."""
    reference = written[1:-1]
    if (value := _aggregate(reference, views, names)) is not None:
        return _Filled(_text_of(value, cleaner), True)
    if (sides := _COMPARISON.fullmatch(reference.strip())) is not None:
        left, right = _aggregate(sides[1], views, names), _aggregate(sides[3], views, names)
        with suppress(TypeError):  # a number and a date
            if left is not None and right is not None and _COMPARE[sides[2]](left, right):
                return _Filled(f"{_text_of(left, cleaner)} {sides[2]} {_text_of(right, cleaner)}", True, True)
    return _Filled(written, False)


def _aggregate(reference: str, views: Mapping[str, HeldView], names: KnownNames) -> Any:
    """Return the number or the date that a reference means; None if it means none."""
    match = _AGGREGATE.fullmatch(reference)
    if match is None or match[1] not in _AGGREGATES or match[2] not in views:
        return None
    frame = views[match[2]].frame
    if match[3] is None:
        return len(frame) if match[1] == "count" else None
    label = names.restored(match[3])
    places = [at for at, name in enumerate(frame.columns) if isinstance(name, type(label)) and name == label]
    if len(places) != 1:
        return None
    try:
        value = _AGGREGATES[match[1]](frame.iloc[:, places[0]])
    except (TypeError, ValueError, OverflowError):  # the mean of a text
        return None
    value = float(value) if isinstance(value, Decimal) else value
    value = value.item() if hasattr(value, "item") else value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if (is_number or isinstance(value, date)) and not pd.isna(value) else None


def _text_of(value: float | date, cleaner: Cleaner) -> str:
    """Return a number or date as text; a word in place of a secret, such as the greatest of card numbers."""
    if isinstance(value, date):
        return value.isoformat()
    is_whole = isinstance(value, int) or value.is_integer()
    plain = str(int(value) if is_whole else value)
    if (clean := cleaner.clean(plain, limit_bytes=1 << 12).value) != plain:
        return str(clean)
    if is_whole:
        return f"{int(value):,}" if abs(value) < 1e15 else f"{value:.6g}"
    return f"{value:,.2f}" if 1 <= abs(value) < 1e15 else f"{value:.4g}"
