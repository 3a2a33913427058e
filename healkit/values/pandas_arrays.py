"""Exact encoding of pandas' arrays, of a column or an index.

Plain ones are numpy's. Text, masked and Arrow ones are Arrow IPC streams; times, periods, intervals and categories are
made of simpler arrays.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from healkit.values import arrow_streams, numpy_arrays
from healkit.values.decoder import zone_of
from healkit.values.encoder import zone_parts
from healkit.values.plain import BadValue, CannotCross

if TYPE_CHECKING:
    from healkit.values.decoder import Decoder
    from healkit.values.encoder import Encoder


def is_extension_array(value: Any) -> bool:
    """Return whether a value of pandas is an array."""
    return isinstance(value, sys.modules["pandas"].api.extensions.ExtensionArray)


def array(encoder: Encoder, values: Any, path: str, depth: int) -> Any:
    """Return the tag of a column's or an index's values: an array of numpy's or of pandas'."""
    kind = type(values).__name__
    if kind == "ndarray":
        return encoder.item(values, path, depth)
    if kind in _ARRAYS:
        return {"@": [kind, *_ARRAYS[kind](encoder, values, path, depth + 2)]}
    dtype = values.dtype
    if kind in {"IntegerArray", "FloatingArray", "BooleanArray"}:
        spec: list[Any] = [dtype.name]
    elif kind in {"StringArray", "ArrowStringArray"}:
        spec = ["string", dtype.storage, "NA" if dtype.na_value is sys.modules["pandas"].NA else "nan"]
    elif kind == "ArrowExtensionArray":
        spec = ["arrow"]
    else:
        raise CannotCross(path, f"values of dtype {dtype}")
    return {"@": ["extension", spec, encoder.content(arrow_streams.of_array(values, path))]}


def _extension(decoder: Decoder, spec: Any, reference: Any) -> Any:
    """Return an array of pandas' whose values came as Arrow."""
    import pandas as pd

    column = arrow_streams.column(decoder.content(reference))
    if spec[0] == "arrow":
        return pd.arrays.ArrowExtensionArray(column)
    dtype: Any
    if spec[0] == "string":
        dtype = pd.StringDtype(spec[1], na_value=pd.NA if spec[2] == "NA" else math.nan)
    elif spec[0] in _MASKED:
        dtype = pd.api.types.pandas_dtype(spec[0])
    else:
        raise BadValue("an unknown dtype")
    return dtype.__from_arrow__(column)


_MASKED = {f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)} | {
    "Float32",
    "Float64",
    "boolean",
}


def _moments(encoder: Encoder, values: Any, path: str, _depth: int) -> list[Any]:
    numpy = sys.modules["numpy"]
    return [
        encoder.content(numpy_arrays.bytes_of(values.asi8, numpy)),
        values.dtype.unit,
        zone_parts(values.tz, path),
    ]


def _moments_of(decoder: Decoder, reference: Any, unit: Any, zone: Any) -> Any:
    import pandas as pd

    times = numpy_arrays.ndarray(
        decoder, f"<M8[{checked_unit(unit)}]", [len(decoder.content(reference)) // 8], reference
    )
    naive: Any = pd.Series(times, copy=False).array
    return naive if not zone else naive.tz_localize("UTC").tz_convert(zone_of(*zone))


def checked_unit(unit: Any) -> Any:
    """Return a unit of time; raise `BadValue` for none."""
    if unit not in {"s", "ms", "us", "ns"}:
        raise BadValue("an unknown unit of time")
    return unit


def _timedeltas_of(decoder: Decoder, values: Any) -> Any:
    import pandas as pd

    return pd.Series(decoder.item(values), copy=False).array


def _categories(encoder: Encoder, values: Any, path: str, depth: int) -> list[Any]:
    return [
        encoder.item(values.codes, path, depth), encoder.item(values.categories, f"{path} categories", depth),
        bool(values.ordered),
    ]  # fmt: skip


def _categorical(decoder: Decoder, codes: Any, categories: Any, ordered: Any) -> Any:
    import pandas as pd

    dtype = pd.CategoricalDtype(decoder.item(categories), ordered)
    return pd.Categorical.from_codes(decoder.item(codes), dtype=dtype, validate=True)


def _periods(encoder: Encoder, values: Any, _path: str, _depth: int) -> list[Any]:
    return [encoder.content(numpy_arrays.bytes_of(values.asi8, sys.modules["numpy"])), values.freqstr]


def _periods_of(decoder: Decoder, reference: Any, freq: Any) -> Any:
    import pandas as pd

    data = decoder.content(reference)
    ordinals = numpy_arrays.ndarray(decoder, "<i8", [len(data) // 8], reference)
    return pd.arrays.PeriodArray(ordinals, dtype=pd.PeriodDtype(str(freq)))


def _intervals_of(decoder: Decoder, left: Any, right: Any, closed: Any) -> Any:
    import pandas as pd

    return pd.arrays.IntervalArray.from_arrays(decoder.item(left), decoder.item(right), closed)


#: pandas' arrays that are more than one column of values: class → what its tag holds.
_ARRAYS: dict[str, Callable[[Any, Any, str, int], list[Any]]] = {
    "DatetimeArray": _moments,
    "TimedeltaArray": lambda encoder, values, path, depth: [encoder.item(values.to_numpy(), path, depth)],
    "Categorical": _categories,
    "PeriodArray": _periods,
    "IntervalArray": lambda encoder, values, path, depth: [
        encoder.item(values.left, path, depth), encoder.item(values.right, path, depth), values.closed,
    ],
}  # fmt: skip

DECODERS: dict[str, Callable[..., Any]] = {
    "extension": _extension,
    "DatetimeArray": _moments_of,
    "TimedeltaArray": _timedeltas_of,
    "Categorical": _categorical,
    "PeriodArray": _periods_of,
    "IntervalArray": _intervals_of,
}
