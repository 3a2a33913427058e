"""Telling of a chooser: `tell` makes everything that it gets.

A plan and a person get exact facts. Any other chooser may send its data away, and may choose so that a count reveals a
cell: `SELECT ... FROM range((SELECT max(salary) FROM staff))` has as many rows as one salary. So it gets counts of
results, and durations, only with one digit. It gets no counts of columns if it wrote the query itself. It learns which
of its names exist only for a limited number of names.
"""

from __future__ import annotations

import ast
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd

from healkit.core.secrets.cleaner import Cleaner
from healkit.core.wire.encoding import is_from_library
from healkit.parts.decide.records import (
    ColumnFacts,
    FoundEntities,
    Origin,
    StateGap,
    StepFacts,
    TextFacts,
    Turn,
    ViewFacts,
)

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns and values of a result that are listed by placeholders.
NUMBERED_MAX = 10
#: Names that may be asked for in a step, and in all.
ASKED_MAX, ASKED_IN_ALL_MAX = 20, 100


def tell(turn: Turn, origins: Mapping[str, Origin], *, in_full: bool) -> Turn:
    """Return the facts in the form for the chooser.

    origins: By the views' names.
    in_full: Whether it is a plan or a person.
    """
    if in_full:
        return turn
    by_name = {view.name: view for view in turn.views}
    total, steps = 0, []
    for step in turn.steps:
        number = _asked(step)
        total += number
        names = number <= ASKED_MAX and total <= ASKED_IN_ALL_MAX
        result_view = by_name.get(str(step.choice.get("viewName")))
        steps.append(_step(step, result_view, names=names))
    views = [_view(view, origins[view.name]) for view in turn.views]
    return msgspec.structs.replace(turn, views=views, steps=steps)


def rounded(count: int) -> int:
    """Round a count to one digit; 0 stays, and 10 stands for 1 to 10."""
    if count <= 0:
        return 0
    unit: int = 10 ** (len(str(count)) - 1)
    return max(10, (count + unit // 2) // unit * unit)


def _view(view: ViewFacts, origin: Origin) -> ViewFacts:
    if origin == "given":
        return view
    columns, numbered = [], 0
    for column in view.columns:
        numbered += column.numbered
        if column.numbered and numbered > NUMBERED_MAX:
            continue
        is_told = origin == "made"
        nulls, distinct = (
            rounded(number) if is_told and number is not None else None
            for number in (column.nulls, column.distinct)
        )
        columns.append(msgspec.structs.replace(column, nulls=nulls, distinct=distinct))
    left_out = rounded(view.column_count - len(columns))
    return msgspec.structs.replace(
        view,
        row_count=rounded(view.row_count),
        column_count=len(columns) + left_out,
        columns=columns,
        columns_left_out=left_out,
        columns_numbered=min(numbered, NUMBERED_MAX),
        rounded=True,
        text=None if view.text is None else _text(view.text, is_told=origin == "made"),
    )


def _text(text: TextFacts, *, is_told: bool) -> TextFacts:
    """Round the counts of a text; without any content if the chooser wrote the query."""
    fields: dict[str, Any] = msgspec.structs.asdict(text)
    for name, value in fields.items():
        if isinstance(value, int):
            fields[name] = rounded(value) if is_told or name == "texts" else 0
        elif isinstance(value, dict) and name != "most_frequent":
            fields[name] = {kind: rounded(count) for kind, count in value.items()} if is_told else {}
    return TextFacts(**fields)


def _step(step: StepFacts, made: ViewFacts | None, *, names: bool) -> StepFacts:
    gap = _gap(step, made, names=names)
    return msgspec.structs.replace(
        step,
        duration_ms=float(rounded(round(step.duration_ms))),
        row_count=None if step.row_count is None else rounded(step.row_count),
        column_count=None,  # a view lists its columns
        differs=gap or None,
        found=_found(step.found, names=names),
    )


def _found(found: FoundEntities | None, *, names: bool) -> FoundEntities | None:
    if found is None:
        return None
    candidates = found.candidates[:NUMBERED_MAX]
    if names:
        return FoundEntities(found.requested, found.found, found.missing, candidates)
    return FoundEntities(found.requested, rounded(found.found), [], candidates)


def _gap(step: StepFacts, made: ViewFacts | None, *, names: bool) -> StateGap:
    """Return the difference without facts that would reveal a hidden name, or too many names."""
    gap, wanted = step.differs or StateGap(), step.choice.get("intended") or {}
    rows = None if gap.rows is None else (gap.rows[0], rounded(gap.rows[1]))
    told_names = None if made is None else {column.name for column in made.columns}
    missing, ranges = list(gap.columns_missing), list(gap.ranges_missed)
    if told_names is not None:  # a name that is there, and not told, is missing
        missing = [name for name in wanted.get("columns") or [] if name in missing or name not in told_names]
        ranges = [name for name in wanted.get("ranges") or {} if name in ranges or name not in told_names]
    if not names:
        return StateGap(rows, [], rounded(gap.entities_missing), gap.entities_intended, [])
    return StateGap(rows, missing, gap.entities_missing, gap.entities_intended, ranges)


def _asked(step: StepFacts) -> int:
    """Count the names that a step asks for."""
    wanted = step.choice.get("intended") or {}
    entities = wanted.get("entities") or []
    listed = sum(map(len, entities.values())) if isinstance(entities, dict) else len(entities)
    requested = 0 if step.found is None else step.found.requested
    return max(listed, requested) + len(wanted.get("columns") or []) + len(wanted.get("ranges") or {})


# Names of columns.
#
# A column's name may be data: after a pivot it is a value of another column. So a chooser gets a name only if it cannot
# be new data. Names of the caller's frames must be plain. No cell and no row label may hold them as a value, in any
# case, with any accents, or in a list. The frame must not look pivoted or transposed. The names of a result are
#
# - names that its input views show, and names that the choice itself gives, if a built-in operation made the result:
#   only `pivot_rows` makes names from cells;
# - else names of the caller's frames, and words of the tool's code or of a short choice, if no input holds them as a
#   value or hides them as a name.
#
# Any other column appears only with its number. A chooser may invent names. Whether it gets them back must not depend
# on the data in bulk: it would learn which of its guesses exist.


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


def looks_plain(label: object) -> bool:
    """Return True for a text that has the form of a name."""
    if not isinstance(label, str) or not 0 < len(label) <= _NAME_MAX_CHARS or _DATES.search(label):
        return False
    return _NAME.fullmatch(label) is not None


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in JSON data, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


def words_in_code(code: str) -> set[str]:
    """Return the texts and names in a tool's code; none for code that is not Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    words = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return words | {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}


def words_of_choice(params: Mapping[str, Any], naming: Iterable[str] | None) -> set[str]:
    """Return the words of a choice that may name columns.

    naming: The parameters of a built-in operation for names of columns, `query` for one in SQL. None for another tool;
        of a long choice, only its text parameters are then used.
    """
    if naming is not None:
        words = set(texts_in([params[name] for name in naming if name in params and name != "query"]))
        if "query" in naming and isinstance(query := params.get("query"), str):
            words.update(quoted or bare for quoted, bare in _ALIAS.findall(query))
        return words
    words = set(texts_in(list(params.values())))
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
    """Return the labels of a frame that its form shows to be cells: of a pivot, a transposed frame, or dummies."""
    index = frame.index
    is_transposed = (
        not isinstance(index, pd.MultiIndex)
        and index.name is None
        and len(index) > 0
        and pd.api.types.infer_dtype(index) == "string"
    )
    if is_transposed or any(name is not None for name in frame.columns.names):
        return set(frame.columns)
    if (spread := _spread_labels(frame)) is not None:
        return spread
    dummies: dict[str, list[int]] = {}
    for position, label in enumerate(frame.columns):
        if isinstance(label, str) and _is_dummy(frame.iloc[:, position]):
            prefix = label.rpartition("_")[0] if "_" in label else ""
            dummies.setdefault(prefix, []).append(position)
    cell_labels: set[Any] = set()
    for positions in dummies.values():
        if len(positions) > 1:
            sums = frame.iloc[:, positions].sum(axis=1)
            if bool((sums <= 1).all()) and bool((sums == 1).any()):
                cell_labels |= {frame.columns[position] for position in positions}
    return cell_labels


#: Columns that a pivot's index had, at most; names of its cells from which on their form alone says so.
_KEYS_MAX, _SPREAD_LEAST = 3, 3
#: Names that pandas gives to row labels without one.
_UNNAMED = frozenset(["index", "level_0"])


def _spread_labels(frame: pd.DataFrame) -> set[Any] | None:
    """Return the labels that a pivot or a transposition left when `reset_index()` took their name; None for none.

    A pivot sorts its rows by the columns of its index, each of them once. It also sorts the names of its cells, whose
    columns all have one type. Two names suffice if only they begin with a capital.
    """
    labels = list(frame.columns)
    if len(labels) < 2 or not len(frame) or not all(isinstance(label, str) for label in labels):
        return None
    if labels[0] in _UNNAMED and is_text(frame.iloc[:, 0]):
        return set(labels[1:])
    if not pd.api.types.is_numeric_dtype(frame.dtypes.iloc[-1]):
        return None
    for count in range(1, min(_KEYS_MAX, len(labels) - 2) + 1):
        keys, spread = labels[:count], labels[count:]
        capitals = not any(key[:1].isupper() for key in keys) and all(label[:1].isupper() for label in spread)
        is_one_type = len({str(dtype) for dtype in frame.dtypes.iloc[count:]}) == 1
        if not is_one_type or spread != sorted(spread) or (len(spread) < _SPREAD_LEAST and not capitals):
            continue
        with suppress(TypeError, ValueError, NotImplementedError):  # cells that cannot be compared
            rows = pd.MultiIndex.from_frame(frame.iloc[:, :count])
            if rows.is_unique and rows.is_monotonic_increasing:
                return set(spread)
    return None


def _is_dummy(column: pd.Series[Any]) -> bool:
    dtype = str(column.dtype).removesuffix("[pyarrow]").lower()
    if dtype in ("bool", "boolean"):
        return True
    return dtype in ("uint8", "int8", "int64") and len(column) > 1 and bool(column.isin([0, 1]).all())


class KnownNames:
    """Names of the caller's frames that a chooser may get, and placeholders for columns and values."""

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._told: set[str] = set()
        self._values: dict[str, Any] = {}

    def admit(self, labels: Iterable[Any], values: set[Any]) -> None:
        """Take the labels of the caller's frames; `values` are labels that are values too."""
        self._told |= self.clean(label for label in labels if looks_plain(label) and label not in values)

    def share(self, labels: Iterable[str]) -> None:
        """Take labels that the caller named when sharing columns."""
        self._told |= set(labels)

    def clean(self, labels: Iterable[str]) -> set[str]:
        """Return the labels in which the sanitiser finds nothing."""
        plain = list(labels)
        clean = self._cleaner.clean(plain, limit_bytes=1 << 24).value
        if not isinstance(clean, list) or len(clean) != len(plain):
            return set()
        return {label for label, cleaned in zip(plain, clean, strict=True) if label == cleaned}

    def of_operation(
        self, labels: Iterable[Any], inputs: set[str], hidden: set[str], words: set[str], code: str,
        frames: Sequence[pd.DataFrame],
    ) -> frozenset[str]:  # fmt: skip
        """Return the labels for the chooser of a built-in operation's result that makes no names of cells.

        inputs, hidden: The facts of its input views, and their numbered labels.
        frames: The frames of its input views.
        """
        texts = {label for label in labels if isinstance(label, str)}
        in_code = words_in_code(code)
        written = in_code - hidden
        allowed = texts & (inputs | self.clean(words) | written) | joined(texts, inputs, written | words)
        return frozenset(allowed - values_among(frames, allowed - inputs - words - in_code))

    def of_tool(
        self,
        labels: Iterable[Any],
        words: set[str],
        code: str,
        hidden: set[str],
        frames: Sequence[pd.DataFrame],
    ) -> frozenset[str]:
        """Return the labels for the chooser of any other tool's result.

        hidden, frames: Those of its input views.
        """
        texts = {label for label in labels if isinstance(label, str)}
        fresh, hidden_forms = texts - self._told, set(map(folded, hidden))
        values = values_among(frames, fresh) | {label for label in fresh if folded(label) in hidden_forms}
        written = words_in_code(code) | words
        plain = (texts & written | joined(texts, self._told, written)) - values
        plain_names = self.clean(label for label in plain if looks_plain(label) or label in words)
        return frozenset(texts & self._told | plain_names)

    def knows(self, label: object) -> bool:
        """Return True if the chooser may get this name of a caller's column."""
        return isinstance(label, str) and label in self._told

    def number(self, view_name: str, position: int, label: object) -> str:
        """Return the name that stands for a column in place of its own; position counts from 1."""
        return self.put(f"{view_name}#{position}", label)

    def put(self, placeholder: str, value: object) -> str:
        """Return a placeholder for a value."""
        self._values[placeholder] = value
        return placeholder

    def is_placeholder(self, word: object) -> bool:
        """Return True for a name that stands for a column or a value."""
        return isinstance(word, str) and word in self._values

    def restored(self, value: object) -> Any:
        """Return a choice's JSON value with columns and values in place of their placeholders."""
        if isinstance(value, str):
            return self._values.get(value, value)
        if isinstance(value, list):
            return [self.restored(inner) for inner in value]
        if isinstance(value, dict):
            return {self.restored(key): self.restored(inner) for key, inner in value.items()}
        return value


def joined(labels: set[str], known: set[str], written: set[str]) -> set[str]:
    """Return the labels that are a known name with a known suffix, such as `price_right`."""
    suffixes = tuple(filter(_SUFFIX.fullmatch, written))
    return {
        label
        for label in labels
        for suffix in suffixes
        if label.endswith(suffix) and label.removesuffix(suffix) in known
    }


# Counts and types of views.
#
# Types come from a closed list: the text of a dtype can hold data, such as the field names of a struct.


#: Columns of a view that are listed, and distinct values of a shared column.
COLUMNS_MAX, VALUES_MAX = 200, 100
#: Rows from which columns are counted in threads, and the most threads: each may hold a table of distinct values.
THREADS_FROM_ROWS, THREADS_MAX = 200_000, 4
_KINDS = ("period", "interval", "Sparse", "list", "struct", "decimal")
_PLAIN_DTYPES = (
    "bool boolean object str string category double halffloat float date32 date64 time32 time64 timestamp duration "
    "binary null"
)
_DTYPES = frozenset(_PLAIN_DTYPES.split())
_SIZED_DTYPE = re.compile(
    r"(u?int|float|complex)\d{1,3}|(datetime64|timedelta64)\[(s|ms|us|ns)\]", re.IGNORECASE
)

#: Nulls of a column, and its distinct values; None where they cannot be compared.
Counts = tuple[int, int | None]


def as_frame(value: object) -> pd.DataFrame | None:
    """Return a table of any library as a DataFrame, for its facts; None for anything else."""
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
        frame = value.to_pandas(types_mapper=_dtype_of)
        return frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame)
    except BaseException as error:  # a worker's table need not be one that can be read
        if not is_from_library(error):
            raise
        return None


def _dtype_of(kind: pa.DataType) -> Any:
    """Return pandas' dtype of an Arrow type; None for dictionary texts, which pandas stores as a category."""
    texts = {"string", "large_string"}
    is_category = str(kind).startswith("dictionary") and str(kind.value_type) in texts
    return None if is_category else pd.ArrowDtype(kind)


def dtype_word(dtype: object) -> str:
    """Return a word of a closed list for a dtype."""
    text = str(dtype)
    if text.endswith("[pyarrow]"):
        text = text.partition("[")[0].partition("<")[0].removeprefix("large_")
        text = "category" if text == "dictionary" else text
    if text.lower() in _DTYPES or _SIZED_DTYPE.fullmatch(text):
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
    """Return the words that the frames contain as a value: in a cell, in a list in one, or as a row's label.

    Case, accents and signs make no difference. For a word such as `name_Smith`, the part after the first sign counts
    too.
    """
    by_form: dict[str, set[str]] = {}
    for word in words:
        if isinstance(word, str):
            for form in {folded(word), folded(word.partition("_")[2])} - {""}:
                by_form.setdefault(form, set()).add(word)
    matches: set[Any] = set()
    remaining = set(by_form)
    for values in _column_texts(frames):
        if not remaining:
            break
        forms = remaining.intersection(map(folded, values))
        matches.update(*(by_form[form] for form in forms))
        remaining -= forms
    return matches


def _column_texts(frames: Iterable[pd.DataFrame]) -> Iterator[Iterable[str]]:
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
                yield texts_in(column.tolist() if distinct is None else distinct)
            elif str(column.dtype).startswith(("list", "struct", "large_list", "fixed_size_list", "map")):
                yield texts_in(column.tolist())


def view_facts(
    name: str,
    frame: pd.DataFrame,
    names: KnownNames,
    told_labels: Collection[Any] | None = None,
    shared: Mapping[Any, list[Any]] | None = None,
    counts: Sequence[Counts] | None = None,
) -> ViewFacts:
    """Return the facts about a view: its exact counts, and names and values that a chooser may get.

    told_labels: By default those that `names` knows.
    shared: Values of shared columns by label.
    counts: The result of `counts_of`, if it is already known.
    """
    columns = []
    earlier_labels: set[Any] = set()
    shared = shared or {}
    for position, (nulls, distinct) in enumerate(counts_of(frame) if counts is None else counts):
        label, column = frame.columns[position], frame.iloc[:, position]
        is_told = (
            names.knows(label) if told_labels is None else label in told_labels
        ) and label not in earlier_labels
        earlier_labels.add(label)
        columns.append(
            ColumnFacts(
                name=label if is_told else names.number(name, position + 1, label),
                dtype=dtype_word(column.dtype),
                nulls=nulls,
                distinct=distinct,
                numbered=not is_told,
                values=shared.get(label) if is_told and isinstance(label, str) else None,
            )
        )
    left_out = len(frame.columns) - len(columns)
    numbered = sum(column.numbered for column in columns)
    return ViewFacts(name, len(frame), len(frame.columns), columns, left_out, numbered)


def texts_of(value: object) -> list[str] | None:
    """Return a text, or a list of texts, as a list; None for anything else."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(text, str) for text in value):
        return list(value)
    return None


def text_facts(texts: Sequence[str], cleaner: Cleaner, *, is_shared: bool = False) -> TextFacts:
    """Count the content of texts.

    is_shared: Whether the chooser may get the most frequent words, n-grams and entities.
    """
    from healkit.parts.decide.summaries import TOP, text_summary

    summary = text_summary("\n\n".join(texts), cleaner, TOP)
    listed = {
        **{f"{size} words" if size > 1 else "words": ngrams for size, ngrams in summary.ngrams.items()},
        **summary.entities,
        **summary.citations,
    }
    words = {kind: [entry.text for entry in about.top] for kind, about in listed.items() if about.top}
    return TextFacts(
        texts=len(texts),
        characters=sum(map(len, texts)),
        words=summary.words,
        distinct_words=summary.distinct_words,
        sentences=summary.sentences,
        paragraphs=summary.paragraphs,
        numbers=summary.numbers.count,
        urls=summary.urls.count,
        entities={kind: about.count for kind, about in summary.entities.items() if about.count},
        citations={kind: about.count for kind, about in summary.citations.items() if about.count},
        most_frequent=words if is_shared else None,
    )


def counts_of(frame: pd.DataFrame) -> list[Counts]:
    """Count each listed column; those of a long frame in threads, because pandas counts without the GIL."""
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
    """Return the distinct values of a shared column, without those that the sanitiser hides."""
    distinct = distinct_values(column) or []
    plain = [
        value if isinstance(value, str | bool | int | float) else str(value)
        for value in distinct[:VALUES_MAX]
    ]
    cleaned = cleaner.clean(plain, limit_bytes=1 << 20).value
    return cleaned if isinstance(cleaned, list) else []
