"""Values between host and worker, as data, and compared.

`encode` and `decode` pass a value to the other process; it arrives equal and of the same type, or it is refused. In an
example or a check, a value has its *kept* form: JSON, with a tag (`codec`) for whatever JSON cannot hold exactly. The
tags include all contents, so the form can be stored, sent and compared as text, and decoded when needed.

Frames, series and indexes are compared as in `pandas.testing`: dtypes, labels and order count, and floats may differ by
`RTOL` and `ATOL`. Only the frequency of an index is ignored, because most operations lose it. Arrays are compared as in
`numpy.testing`, with their shape and dtype and the same tolerances. NaN equals NaN everywhere.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from healkit.core.contracts.patches import same_value
from healkit.core.crossing.codec import (
    EXPANDED_MAX_BYTES,
    FRAME,
    MARK,
    BadValue,
    Buffers,
    CannotCross,
    Decoder,
    Encoder,
    TooLarge,
    is_whole,
    outweighs,
)
from healkit.core.wire import claims
from healkit.core.wire.encoding import (
    TAG,
    LongInt,
    Preview,
    int_text,
    is_from_library,
    is_long,
    is_plain,
    to_jsonable,
    type_only,
)
from healkit.errors import HealkitError

__all__ = [
    "EXPANDED_MAX_BYTES",
    "MARK",
    "TAG",
    "BadValue",
    "Buffers",
    "CannotCross",
    "Preview",
    "SecretColumns",
    "TooLarge",
    "adopted",
    "as_parts",
    "as_text",
    "call_text",
    "decode",
    "encode",
    "encode_for_log",
    "equal",
    "for_schema",
    "has_tags",
    "is_frame_outline",
    "is_plain",
    "is_tabular",
    "is_whole",
    "kept",
    "large_parts",
    "meets",
    "outweighs",
    "readable",
    "readable_json",
    "recorded_frame",
    "recorded_text",
    "recorded_value",
    "remade",
    "restored_value",
    "same",
    "shown_value",
    "table_of",
    "value_preview",
    "value_text",
    "why_different",
    "with_texts",
    "without_secret_frames",
]  # fmt: skip

#: Takes column names with their first values; returns the names of the columns that hold secrets.
SecretColumns = Callable[[Mapping[str, Sequence[Any]]], Collection[str]]

_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode


def encode(
    value: object, buffers: Buffers | None = None, root: str = "$", limit_bytes: int | None = None
) -> tuple[bytes, list[str]]:
    """Return the encoded value, and notes on items that arrive as their contents.

    buffers: Receives the contents of arrays and frames, as bytes-like objects, in the order of their numbers.
    root: Beginning of paths in errors and notes.
    limit_bytes: Maximum memory on arrival, counted as in `decode`.

    Raises `CannotCross`, or `TooLarge` above the limit.
    """
    try:
        if is_plain(value):
            return _encode_json(value), []
    except (RecursionError, UnicodeEncodeError):
        pass  # the slow way below reports the position
    encoder = Encoder(buffers, encode_foreign, limit_bytes)
    tagged = encoder.item(value, root, 0)
    return _encode_json(tagged), encoder.notes


def encode_for_log(value: object, secret_columns: SecretColumns | None = None) -> tuple[bytes, int]:
    """Return a value in the form that the log keeps, and the number of previews in it that replace large contents.

    secret_columns: Gets the first values of a frame's columns; returns the names of columns that previews hide.
    """

    def look(encoder: Encoder, value: object, path: str, depth: int) -> Any:
        summary = value_preview(value, secret_columns)
        if summary is None:
            return encode_foreign(encoder, value, path, depth)
        encoder.previews += 1
        return {TAG: ["preview", to_jsonable(summary)[0], encoder.previews - 1]}

    encoder = Encoder(None, look)
    return _encode_json(encoder.item(value, "$", 0)), encoder.previews


def large_parts(value: object) -> list[Any]:
    """Return the frames, arrays and tables in a value that have a preview in the log, in the order of their numbers."""
    parts: list[Any] = []

    def look(encoder: Encoder, value: object, path: str, depth: int) -> Any:
        if value_preview(value) is None:
            return encode_foreign(encoder, value, path, depth)
        parts.append(value)
        return {}

    Encoder(None, look).item(value, "$", 0)
    return parts


def readable(value: object, secret_columns: SecretColumns | None = None) -> tuple[Any, list[str]]:
    """Return a value as plain JSON for people, and notes on the parts that are not shown as they are."""
    return to_jsonable(value, preview=functools.partial(value_preview, secret_columns=secret_columns))


def readable_json(value: object, secret_columns: SecretColumns | None = None) -> bytes:
    """Return the JSON of `readable`, encoded."""
    return _encode_json(readable(value, secret_columns)[0])


def for_schema(value: object) -> Any:
    """Return a value as plain JSON for a schema check; a frame becomes its columns, an array its first items."""
    return to_jsonable(value, preview=_outline, long=LongInt)[0]


def is_frame_outline(value: object) -> bool:
    """Return whether a part of the result of `for_schema` represents a frame."""
    return isinstance(value, dict) and value.get(FRAME) is True


def _outline(value: object) -> Any:
    if not _may_be_frame(value):
        return None
    from healkit.core.crossing import frames

    try:
        return frames.outline(value)
    except BaseException as error:
        if not is_from_library(error):
            raise
        return None


def decode(
    data: bytes | memoryview | msgspec.Raw, buffers: Sequence[Any] = (), limit_bytes: int | None = None
) -> Any:
    """Return the value that the other process encoded with `encode`. Raises `BadValue` for anything else.

    limit_bytes: For a worker's value, whose bytes `claims.check_claim` must have checked: maximum memory of its frames
        and arrays. Shared data counts each time that it is referred to.
    """
    try:
        plain = claims.decode_checked(data, _decode_json)
    except claims.BadClaim as error:
        raise BadValue(str(error)) from None
    return restored_value(plain, buffers, limit_bytes=limit_bytes) if MARK in bytes(data) else plain


def restored_value(
    plain: object,
    buffers: Sequence[Any] = (),
    whole: Callable[[Preview], Any] = lambda preview: preview,
    limit_bytes: int | None = None,
) -> Any:
    """Return the value of decoded JSON with tags. Raises `BadValue`, and the errors of `whole`.

    whole: Returns the replacement of a preview; by default the preview.
    limit_bytes: As in `decode`.
    """
    try:
        return Decoder(buffers, _frame_of, whole, limit_bytes).item(plain)
    except (BadValue, HealkitError):
        raise
    except RecursionError:
        raise BadValue("nested too deeply") from None
    except BaseException as error:  # constructors may raise anything for a wrong value
        if not is_from_library(error):
            raise
        raise BadValue(f"{type(error).__name__}: {str(error)[:500]}") from None


def _may_be_frame(value: object) -> bool:
    """Return False if neither numpy nor Arrow is imported and the value does not support Arrow."""
    loaded = "numpy" in sys.modules or "pyarrow" in sys.modules
    return loaded or hasattr(type(value), "__arrow_c_stream__")


def encode_foreign(encoder: Encoder, value: object, path: str, depth: int) -> Any:
    """Return the tag of a value of numpy, pandas or Arrow; None for any other value."""
    if not _may_be_frame(value):
        return None
    from healkit.core.crossing import (
        frames,  # late, because pandas is slow to import and most values do not need it
    )

    return frames.encoded(encoder, value, path, depth)


def is_tabular(value: object) -> bool:
    """Return whether a value is a frame, an array or a table, of any size."""
    if not _may_be_frame(value):
        return False
    from healkit.core.crossing import frames

    return frames.is_tabular(value)


def value_preview(value: object, secret_columns: SecretColumns | None = None) -> Any:
    """Return a record's preview of a large frame, array or table; None for a small one, or another value."""
    if not _may_be_frame(value):
        return None
    from healkit.core.crossing import frames

    try:
        return frames.frame_preview(value, secret_columns)
    except BaseException as error:  # its library cannot show the value
        if not is_from_library(error):
            raise
        return frames.outside_of(value)


def _frame_of(decoder: Decoder, name: str, rest: list[Any]) -> Any:
    from healkit.core.crossing import frames

    if name not in frames.DECODERS:
        raise BadValue(f"an unknown type {name[:50]!r}")
    return frames.DECODERS[name](decoder, *rest)


# Kept values.


#: Number of items of a frame, an array or a container, and of rows of a table, in a text.
_SHOWN_ITEMS, _TABLE_ROWS = 12, 20


def kept(value: object) -> Any:
    """Return a value in its kept form; a value that cannot cross becomes a readable text."""
    try:
        if is_plain(value):
            return to_jsonable(value)[0]  # writes a lone surrogate as an escape
        return _decode_json(encode(value)[0])
    except (CannotCross, RecursionError):
        return to_jsonable(value)[0]


def adopted(value: object) -> Any:
    """Return a value in its kept form; a value already in that form, such as from another vault, is unchanged."""
    if has_tags(value) and _is_json(value):
        try:
            restored_value(value)
        except BadValue:
            pass
        else:
            return value
    return kept(value)


def _is_json(value: object) -> bool:
    """Return whether a value consists of lists, dicts with text keys, texts, numbers and None."""
    if type(value) is dict:
        return all(type(key) is str and _is_json(item) for key, item in value.items())
    if type(value) is list:
        return all(map(_is_json, value))
    return value is None or type(value) in {bool, int, float, str}


def has_tags(plain: object) -> bool:
    """Return whether a kept value contains a tag, or an int that is too long for JSON."""
    if type(plain) is int:
        return is_long(plain)
    if type(plain) is dict:
        return TAG in plain or any(map(has_tags, plain.values()))
    return type(plain) is list and any(map(has_tags, plain))


def remade(plain: object) -> Any:
    """Return the value of a kept form; JSON that only looks like a tag is unchanged."""
    if not has_tags(plain):
        return plain
    try:
        return restored_value(plain)
    except BadValue:
        return plain


def without_secret_frames(plain: object, secret_columns: SecretColumns) -> Any:
    """Return a kept value in which frames with a secret column are replaced by their readable form.

    A frame is kept as encoded bytes, in which a column cannot be hidden.
    """
    try:
        if not has_tags(plain):
            return plain
    except RecursionError:  # nested deeper than any value that can cross
        return plain
    if type(plain) is list:
        return [without_secret_frames(item, secret_columns) for item in plain]
    if type(plain) is not dict:
        return plain
    if TAG in plain and is_tabular(frame := remade(plain)):
        table = readable(frame)[0]
        if type(table) is list:  # a series or an array, which may have a name
            table = {"columns": [getattr(frame, "name", None)], "rows": [[item] for item in table]}
        names, rows = table.get("columns", ()), table.get("rows", table.get("first", ()))
        columns = {name: [row[at] for row in rows] for at, name in enumerate(names) if isinstance(name, str)}
        return table if secret_columns(columns) else plain
    return {key: without_secret_frames(item, secret_columns) for key, item in plain.items()}


def meets(expected: object, value: object) -> bool:
    """Return whether a live value equals the expected, kept value.

    If the expected value is plain JSON, it is compared with the JSON of the value, which has neither tuples nor sets.
    For a large frame in a record, its preview is compared.
    """
    if has_tags(expected):
        return equal(remade(expected), value)
    if same_value(expected, to_jsonable(value)[0]):
        return True
    return not is_plain(value) and same_value(expected, readable(value)[0])


def same(expected: object, found: object) -> bool:
    """Return whether two kept values are equal, by the rules of `meets`."""
    if not (has_tags(expected) or has_tags(found)):
        return same_value(expected, found)
    return meets(expected, remade(found))


def why_different(expected: object, found: object) -> str:
    """Describe in one line how two kept frames or arrays differ; empty for other values."""
    if not (has_tags(expected) and has_tags(found)):
        return ""
    return difference(remade(expected), remade(found))


def shown_value(plain: object) -> Any:
    """Return a kept value as readable JSON, for a record."""
    return readable(remade(plain))[0] if has_tags(plain) else plain


def as_parts(plain: object) -> Any:
    """Return a kept value as plain lists and dicts; a frame becomes a dict of its columns."""
    if not has_tags(plain):
        return plain
    if type(plain) is dict and TAG not in plain:
        return {key: as_parts(item) for key, item in plain.items()}
    if type(plain) is list:
        return [as_parts(item) for item in plain]
    return to_jsonable(_parts(remade(plain)))[0]


def _parts(value: Any) -> Any:
    if type(value).__module__.partition(".")[0] == "pandas":
        if hasattr(value, "columns"):
            return {str(name): value.iloc[:, i].tolist() for i, name in enumerate(value.columns)}
        if hasattr(value, "tolist"):
            return value.tolist()
    return value


def with_texts(plain: object) -> Any:
    """Return a kept value with each tag replaced by a text such as `DataFrame({'city': ['Bern']})`."""
    if type(plain) is dict:
        if TAG in plain:
            return value_text(plain)
        return {key: with_texts(item) for key, item in plain.items()}
    return [with_texts(item) for item in plain] if type(plain) is list else plain


def value_text(plain: object) -> str:
    """Return a kept value as Python code; a frame or an array shows its first items."""
    return as_text(remade(plain))


def as_text(value: object) -> str:
    """Return a live value as Python code; a frame or an array shows its first items, a preview its shape."""
    try:
        return repr(value) if is_plain(value) else _text(value)
    except BaseException as error:  # such as a library's date beyond Python's years
        if not is_from_library(error):
            raise
        return type_only(value)


def recorded_text(plain: object) -> str:
    """Return a recorded value as text, with `DataFrame 2 × 2` in place of a frame."""
    return as_text(recorded_value(plain))


def recorded_frame(plain: object) -> Preview | None:
    """Return the preview for a frame or an array in a record's readable JSON; None for any other value."""
    if not isinstance(plain, dict) or not isinstance(shape := plain.get("shape"), list):
        return None
    small = plain.keys() == {"shape", "columns", "rows"}
    if not (small or plain.keys() >= {"type", "shape", "first"}) or not all(type(n) is int for n in shape):
        return None
    return Preview({**plain, "type": "DataFrame", "first": plain["rows"]} if small else plain)


def recorded_value(plain: object) -> Any:
    """Return a record's readable JSON, with a preview in place of each frame or array."""
    if type(plain) is list:
        return [recorded_value(item) for item in plain]
    if type(plain) is not dict:
        return plain
    if TAG in plain:
        return remade(plain)
    return recorded_frame(plain) or {key: recorded_value(item) for key, item in plain.items()}


def table_of(value: object) -> str:
    """Return a frame or a series as a table in text; empty for another value, or one that cannot be shown."""
    if type(value).__module__.partition(".")[0] != "pandas" or not hasattr(value, "to_string"):
        return ""
    try:
        return _table(value)
    except BaseException as error:
        if not is_from_library(error):
            raise
        return ""


def _table(value: Any) -> str:
    frame = value.to_frame() if value.ndim == 1 else value
    if frame.empty:
        return f"no rows; columns {', '.join(map(str, frame.columns))}"
    return str(frame.to_string(max_rows=_TABLE_ROWS, max_cols=_SHOWN_ITEMS))


def call_text(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a call with kept arguments as code, such as `fibonacci(n=2)`."""
    return f"{tool}({', '.join(f'{name}={value_text(value)}' for name, value in arguments.items())})"


def _text(value: Any) -> str:
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    if package == "pandas" and name == "DataFrame":
        columns = [f"{_text(label)}: {_items(value.iloc[:, i])}" for i, label in enumerate(value.columns)]
        return f"DataFrame({{{_cut(columns)}}}{_index_text(value.index)})"
    if package == "pandas" and name == "Series":
        named = "" if value.name is None else f", name={_text(value.name)}"
        return f"Series({_items(value)}{_index_text(value.index)}{named})"
    if package == "pandas" and name.endswith("Index"):
        return f"{name}({_items(value)})"
    if package == "pandas" and name == "Timestamp":
        return f"Timestamp({str(value)!r})"
    if package == "numpy" and name == "ndarray":
        dtype = "" if value.dtype.kind in "ifbU" else f", dtype={str(value.dtype)!r}"
        more = f", … of shape {value.shape}" if value.size > _SHOWN_ITEMS else ""
        first = value.tolist() if not more else value.ravel()[:_SHOWN_ITEMS].tolist()
        return f"array({_text(first)}{more}{dtype})"
    if type(value) is list:
        return f"[{', '.join(map(_text, value))}]"
    if package in {"polars", "pyarrow"} and hasattr(value, "shape"):
        return f"{name} {' × '.join(f'{size:,}' for size in value.shape)}"
    if type(value) is tuple:
        return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
    if type(value) is int:
        return int_text(value)
    if type(value) is dict:
        return f"{{{', '.join(f'{_text(key)}: {_text(item)}' for key, item in value.items())}}}"
    if type(value) is float and not math.isfinite(value):
        return str(value)
    try:
        return repr(value)
    except ValueError:  # an int with more digits than Python prints
        return repr(to_jsonable(value)[0])


def _items(values: Any) -> str:
    """Return the first items of a column or an index; times without the hour if all are at midnight."""
    texts = [_item_text(item) for item in values[:_SHOWN_ITEMS].tolist()]
    return f"[{_cut(texts, len(values))}]"


def _item_text(item: object) -> str:
    if type(item).__name__ == "Timestamp":
        return repr(str(item).removesuffix(" 00:00:00"))
    return _text(item)


def _index_text(index: Any) -> str:
    plain = (
        type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1) and index.name is None
    )
    return "" if plain else f", index={_items(index)}"


def _cut(texts: list[str], count: int | None = None) -> str:
    count = len(texts) if count is None else count
    return ", ".join([*texts[:_SHOWN_ITEMS], *(["…"] if count > _SHOWN_ITEMS else [])])


# Equality.


#: Tolerances of floats in frames and arrays, as in `pandas.testing`.
RTOL, ATOL = 1e-5, 1e-8
#: Tolerances of single numbers: nine digits.
_NUMBER_RTOL, _NUMBER_ATOL = 1e-9, 1e-12
#: Maximum length of the description of a difference, in characters.
_SAID_CHARS = 300


def equal(expected: object, found: object) -> bool:
    """Return whether a value equals the expected one; False if the comparison fails."""
    try:
        return _equal(expected, found)
    except BaseException as error:  # comparison methods of a library or a tool may raise anything
        if not is_from_library(error):
            raise
        return False


def difference(expected: object, found: object) -> str:
    """Describe in one line how two frames, series, indexes or arrays differ; empty if there is no such description."""
    if type(expected) is not type(found):
        return ""
    try:
        compare = _pandas_compare(expected) or _numpy_compare(expected)
        if compare is not None:
            compare(expected, found)
    except AssertionError as error:
        return " ".join(str(error).replace("[left]", "found").replace("[right]", "wanted").split())[
            :_SAID_CHARS
        ]
    except BaseException as error:  # as above
        if not is_from_library(error):
            raise
    return ""


def _equal(expected: object, found: object) -> bool:
    expected, found = _scalar(expected), _scalar(found)
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, int | float) and isinstance(found, int | float):
        return _same_number(expected, found)
    if isinstance(expected, list | tuple):
        fitting = list | tuple if type(expected) is list else tuple
        return (
            isinstance(found, fitting) and len(expected) == len(found) and all(map(_equal, expected, found))
        )
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and expected.keys() == found.keys()
            and all(_equal(value, found[key]) for key, value in expected.items())
        )
    if type(expected) is not type(found):
        return False
    if (compare := _pandas_compare(expected) or _numpy_compare(expected)) is not None:
        try:
            compare(expected, found)
        except AssertionError:
            return False
        return True
    if hasattr(expected, "equals"):  # an Arrow or polars table
        return bool(expected.equals(found))
    return expected is found or bool(expected == found)


def _same_number(expected: float, found: float) -> bool:
    if isinstance(expected, int) and isinstance(found, int):
        return expected == found
    if math.isnan(expected):
        return math.isnan(found)
    return math.isclose(expected, found, rel_tol=_NUMBER_RTOL, abs_tol=_NUMBER_ATOL)


def _scalar(value: object) -> Any:
    """Return a numpy number as a Python number; any other value unchanged."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.bool_ | numpy.integer | numpy.floating):
        return value.item()
    return value


def _pandas_compare(expected: object) -> Any:
    """Return a function that raises `AssertionError` if two pandas values differ; None for other values."""
    if type(expected).__module__.partition(".")[0] != "pandas" or not hasattr(expected, "__len__"):
        return None
    pd = sys.modules["pandas"]
    testing = pd.testing
    near: dict[str, Any] = {"rtol": RTOL, "atol": ATOL}
    if isinstance(expected, pd.DataFrame):
        return lambda wanted, found: testing.assert_frame_equal(found, wanted, check_freq=False, **near)
    if isinstance(expected, pd.Series):
        return lambda wanted, found: testing.assert_series_equal(found, wanted, check_freq=False, **near)
    if isinstance(expected, pd.Index):
        return lambda wanted, found: testing.assert_index_equal(
            _without_freq(found), _without_freq(wanted), check_exact=False, **near
        )
    if isinstance(expected, pd.api.extensions.ExtensionArray):
        return lambda wanted, found: testing.assert_extension_array_equal(found, wanted, **near)
    return None


def _without_freq(index: Any) -> Any:
    if type(index).__name__ in {"DatetimeIndex", "TimedeltaIndex"} and index.freq is not None:
        index = index.copy()
        index.freq = None
    return index


def _numpy_compare(expected: object) -> Any:
    """Return a function that raises `AssertionError` if two arrays differ; None for other values."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(expected, numpy.ndarray):
        return None
    if expected.dtype.kind in "fc":
        return lambda wanted, found: numpy.testing.assert_allclose(
            found, wanted, rtol=RTOL, atol=ATOL, equal_nan=True, strict=True
        )
    if expected.dtype.kind == "O":
        return _compare_objects
    return lambda wanted, found: numpy.testing.assert_array_equal(found, wanted, strict=True)


def _compare_objects(wanted: Any, found: Any) -> None:
    if wanted.shape != found.shape or found.dtype.kind != "O":
        raise AssertionError(f"shapes or dtypes are different: found {found.shape}, wanted {wanted.shape}")
    for place, (expected, actual) in enumerate(
        zip(wanted.ravel().tolist(), found.ravel().tolist(), strict=True)
    ):
        if not _equal(expected, actual):
            raise AssertionError(f"item {place} is different: found {actual!r}, wanted {expected!r}")
