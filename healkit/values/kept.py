"""Values as data: in an example or a check, compared, shown.

A kept value is JSON. What JSON cannot hold exactly is a tag in it (`values.encoder`), contents and all, so that it can
be stored, sent and compared as text, and made again where it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from healkit.contracts.encoding import (
    TAG,
    Preview,
    int_text,
    is_from_library,
    is_long,
    is_plain,
    to_jsonable,
    type_only,
)
from healkit.contracts.healing import same_value
from healkit.values import comparing, crossing
from healkit.values.plain import BadValue, CannotCross

#: Items of a frame, an array or a container that are written out in a text.
_SHOWN_ITEMS, _TABLE_ROWS = 12, 20
_decode = msgspec.json.Decoder().decode


def kept(value: object) -> Any:
    """Return a value in its kept form; what cannot cross at all as the readable text that stands for it."""
    try:
        if is_plain(value):
            return to_jsonable(value)[0]  # a lone surrogate as its escape
        return _decode(crossing.encode(value)[0])
    except (CannotCross, RecursionError):
        return to_jsonable(value)[0]


def adopted(value: object) -> Any:
    """Return a value in its kept form; one that is in it already, such as what another vault has stored, as it is."""
    if has_tags(value) and _is_json(value):
        try:
            crossing.restore(value)
        except BadValue:
            pass
        else:
            return value
    return kept(value)


def _is_json(value: object) -> bool:
    """Return whether a value consists of lists, dicts with texts for keys, texts, numbers and None."""
    if type(value) is dict:
        return all(type(key) is str and _is_json(item) for key, item in value.items())
    if type(value) is list:
        return all(map(_is_json, value))
    return value is None or type(value) in {bool, int, float, str}


def has_tags(plain: Any) -> bool:
    """Return whether a kept value holds more than plain JSON, or an int too long for it."""
    if type(plain) is int:
        return is_long(plain)
    if type(plain) is dict:
        return TAG in plain or any(map(has_tags, plain.values()))
    return type(plain) is list and any(map(has_tags, plain))


def remade(plain: Any) -> Any:
    """Return the value that is kept; JSON that only looks like a tag as it is."""
    if not has_tags(plain):
        return plain
    try:
        return crossing.restore(plain)
    except BadValue:
        return plain


def meets(expected: Any, value: object) -> bool:
    """Return whether a live value is what is expected, a kept value.

    An expectation in plain JSON is compared with the value's JSON, which has neither tuples nor sets; that of a large
    frame in a record is its preview.
    """
    if has_tags(expected):
        return comparing.equal(remade(expected), value)
    if same_value(expected, to_jsonable(value)[0]):
        return True
    return not is_plain(value) and same_value(expected, crossing.readable(value)[0])


def same(expected: Any, found: Any) -> bool:
    """Return whether two kept values are equal, as `meets` has it."""
    if not (has_tags(expected) or has_tags(found)):
        return same_value(expected, found)
    return meets(expected, remade(found))


def why_different(expected: Any, found: Any) -> str:
    """Return in one line how two kept frames or arrays differ; empty for other values."""
    if not (has_tags(expected) and has_tags(found)):
        return ""
    return comparing.difference(remade(expected), remade(found))


def shown(plain: Any) -> Any:
    """Return a kept value as readable JSON, for a record."""
    return crossing.readable(remade(plain))[0] if has_tags(plain) else plain


def as_parts(plain: Any) -> Any:
    """Return a kept value as plain lists and dicts of what it is made of: a frame is a dict of its columns."""
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


def with_texts(plain: Any) -> Any:
    """Return a kept value with a text in the place of each tag: `DataFrame({'city': ['Bern']})`."""
    if type(plain) is dict:
        if TAG in plain:
            return text_of(plain)
        return {key: with_texts(item) for key, item in plain.items()}
    return [with_texts(item) for item in plain] if type(plain) is list else plain


def text_of(plain: Any) -> str:
    """Return a kept value as Python writes it; of a frame or an array the first items."""
    return as_text(remade(plain))


def as_text(value: Any) -> str:
    """Return a live value as Python writes it; of a frame or an array the first items, of a preview its shape."""
    try:
        return repr(value) if is_plain(value) else _text(value)
    except BaseException as error:  # a date of a library's beyond Python's years, and the like
        if not is_from_library(error):
            raise
        return type_only(value)


def recorded_text(plain: Any) -> str:
    """Return a value as a record has it, with `DataFrame 2 × 2` in the place of what stands for a frame there."""
    return as_text(_recorded(plain))


def recorded_frame(plain: Any) -> Preview | None:
    """Return what stands for a frame or an array in a record's readable JSON as a preview; None for all else."""
    if not isinstance(plain, dict) or not isinstance(shape := plain.get("shape"), list):
        return None
    small = plain.keys() == {"shape", "columns", "rows"}
    if not (small or plain.keys() >= {"type", "shape", "first"}) or not all(type(n) is int for n in shape):
        return None
    return Preview({**plain, "type": "DataFrame", "first": plain["rows"]} if small else plain)


def _recorded(plain: Any) -> Any:
    if type(plain) is list:
        return [_recorded(item) for item in plain]
    if type(plain) is not dict:
        return plain
    if TAG in plain:
        return remade(plain)
    return recorded_frame(plain) or {key: _recorded(item) for key, item in plain.items()}


def table_of(value: Any) -> str:
    """Return a frame or a series as the lines of a table; empty for another value, or one that cannot be shown."""
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
    """Return a call with kept arguments in words: `fibonacci(n=2)`."""
    return f"{tool}({', '.join(f'{name}={text_of(value)}' for name, value in arguments.items())})"


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
    except ValueError:  # an int with more digits than Python writes
        return repr(to_jsonable(value)[0])


def _items(values: Any) -> str:
    """Return the first items of a column or an index; times without the hour where all are at midnight."""
    found = [_item_text(item) for item in values[:_SHOWN_ITEMS].tolist()]
    return f"[{_cut(found, len(values))}]"


def _item_text(item: Any) -> str:
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
