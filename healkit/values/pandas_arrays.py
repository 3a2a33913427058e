"""Exact encoding of pandas' arrays, of a column or an index.

Plain ones are numpy's. Text, masked and Arrow ones are Arrow IPC streams; times, periods, intervals and categories are
made of simpler arrays.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from healkit.contracts.encoding import is_from_library
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
    with refusing(path):
        return _array(encoder, values, path, depth)


@contextlib.contextmanager
def refusing(path: str) -> Iterator[None]:
    """Raise `CannotCross` for whatever a library raises for a value: it cannot be read, or not be said in Arrow."""
    try:
        yield
    except (CannotCross, RecursionError, MemoryError):
        raise
    except BaseException as error:
        if not is_from_library(error):
            raise
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise CannotCross(path, f"a value that cannot be written ({said})") from None


def _array(encoder: Encoder, values: Any, path: str, depth: int) -> Any:
    kind = type(values).__name__
    if kind == "ndarray":
        return encoder.item(values, path, depth)
    if kind in _ARRAYS:
        return {"@": [kind, *_ARRAYS[kind](encoder, values, path, depth + 2)]}
    dtype = values.dtype
    if kind in arrow_streams.MASKED_ARRAYS:
        spec: list[Any] = [dtype.name]
    elif kind in {"StringArray", "ArrowStringArray"}:
        spec = ["string", dtype.storage, "NA" if dtype.na_value is sys.modules["pandas"].NA else "nan"]
    elif kind == "ArrowExtensionArray":
        spec = ["arrow"]
    else:
        raise CannotCross(path, f"values of dtype {dtype}")
    return {
        "@": ["extension", spec, encoder.content(arrow_streams.of_array(values, path, encoder.spend(path)))]
    }


def _extension(decoder: Decoder, spec: Any, reference: Any) -> Any:
    """Return an array of pandas' whose values came as Arrow."""
    import pandas as pd

    column = arrow_streams.column(decoder.content(reference), decoder.spend)
    if spec[0] == "arrow":
        return pd.arrays.ArrowExtensionArray(column)
    dtype: Any
    if spec[0] == "string":
        dtype = pd.StringDtype(spec[1], na_value=pd.NA if spec[2] == "NA" else math.nan)
    elif spec[0] in _MASKED:
        dtype = pd.api.types.pandas_dtype(spec[0])
    else:
        raise BadValue("an unknown dtype")
    if str(column.type) not in _MASKED.get(spec[0], _STRINGS):
        raise BadValue(f"values of Arrow's type {column.type} as {dtype}"[:300])
    if spec[0].startswith("Float"):  # pandas' own way makes NA of a NaN
        numpy = sys.modules["numpy"]
        data = numpy.array(column.fill_null(0).to_numpy(), dtype.numpy_dtype, copy=True)
        return pd.arrays.FloatingArray(data, numpy.array(column.is_null().to_numpy(), copy=True))
    return dtype.__from_arrow__(column)


#: Dtype of a masked array → Arrow's type of its values.
_MASKED = {
    **{f"{sign}Int{bits}": {f"{sign.lower()}int{bits}"} for sign in ("", "U") for bits in (8, 16, 32, 64)},
    "Float32": {"float"}, "Float64": {"double"}, "boolean": {"bool"},
}  # fmt: skip
_STRINGS = {"string", "large_string"}


def _moments(encoder: Encoder, values: Any, path: str, _depth: int) -> list[Any]:
    numpy = sys.modules["numpy"]
    return [
        encoder.content(numpy_arrays.bytes_of(values.asi8, numpy)),
        values.unit,
        zone_parts(values.tz, path),
    ]


def _moments_of(decoder: Decoder, reference: Any, unit: Any, zone: Any, freq: Any = None) -> Any:
    import pandas as pd

    times = numpy_arrays.vector(decoder.content(reference), f"<M8[{checked_unit(unit)}]")
    naive: Any = pd.Series(times, copy=False).array
    return with_freq(naive if not zone else naive.tz_localize("UTC").tz_convert(zone_of(*zone)), freq)


def freq_of(values: Any, path: str) -> str | None:
    """Return the frequency of an index or an array, as a text; raise `CannotCross` for one that no text names."""
    freq = getattr(values, "freq", None)
    if freq is None or type(values).__name__ not in _WITH_FREQ:
        return None
    try:
        if sys.modules["pandas"].tseries.frequencies.to_offset(freq.freqstr) == freq:
            return str(freq.freqstr)
    except ValueError:
        pass
    raise CannotCross(path, f"a frequency that no text names, {freq!r}"[:300])


def with_freq(values: Any, freq: Any) -> Any:
    """Return an index or an array with its frequency, which must be that of its values."""
    if freq is not None:
        values.freq = freq
    return values


_WITH_FREQ = {"DatetimeIndex", "TimedeltaIndex", "DatetimeArray", "TimedeltaArray"}


def checked_unit(unit: Any) -> Any:
    """Return a unit of time; raise `BadValue` for none."""
    if unit not in {"s", "ms", "us", "ns"}:
        raise BadValue("an unknown unit of time")
    return unit


def _timedeltas_of(decoder: Decoder, values: Any, freq: Any = None) -> Any:
    import pandas as pd

    return with_freq(pd.Series(column_of(decoder, values, "m"), copy=False).array, freq)


def column_of(decoder: Decoder, values: Any, kinds: str = "") -> Any:
    """Return an array of one dimension, of numpy's or pandas'. Raises `BadValue` for anything else, such as a range."""
    found = decoder.item(values)
    if type(found).__name__ != "ndarray" and not is_extension_array(found):
        raise BadValue("something other than an array of values")
    if found.ndim != 1 or (kinds and found.dtype.kind not in kinds):
        raise BadValue("an array of the wrong kind")
    return found


def index_of(decoder: Decoder, index: Any) -> Any:
    """Return an index. Raises `BadValue` for anything else."""
    found = decoder.item(index)
    if not isinstance(found, sys.modules["pandas"].Index):
        raise BadValue("something other than an index")
    return found


def _categories(encoder: Encoder, values: Any, path: str, depth: int) -> list[Any]:
    return [
        encoder.item(values.codes, path, depth), encoder.item(values.categories, f"{path} categories", depth),
        bool(values.ordered),
    ]  # fmt: skip


def _categorical(decoder: Decoder, codes: Any, categories: Any, ordered: Any) -> Any:
    import pandas as pd

    found, names = column_of(decoder, codes, "i"), index_of(decoder, categories)
    check_codes(decoder, found, names)
    dtype = (
        pd.CategoricalDtype._from_fastpath(names, ordered)  # type: ignore[attr-defined]  # pandas' own, without the check
        if is_unique(decoder, names)
        else pd.CategoricalDtype(names, ordered)
    )
    return pd.Categorical.from_codes(found, dtype=dtype, validate=True)


def check_codes(decoder: Decoder, codes: Any, values: Any) -> None:
    """Count what a worker's codes would take with a value for each; raise `BadValue` for codes of nothing."""
    numpy = sys.modules["numpy"]
    if decoder.spend is None or not len(codes):
        return
    if codes.max() >= len(values) or codes.min() < -1:
        raise BadValue("codes of values that are not there")
    if values.dtype.kind == "O" or is_extension_array(values.array):
        texts = (len(value) if isinstance(value, str | bytes) else 0 for value in values)
        decoder.take(int(numpy.fromiter((*texts, 0), "i8", len(values) + 1)[codes].sum()))


def is_unique(decoder: Decoder, values: Any) -> bool:
    """Return True where a worker's index was seen to hold nothing twice, False where pandas may look for itself.

    pandas would put the items into a hash table, in which those of a worker may all collide. Raises `BadValue`.
    """
    if decoder.spend is None or len(values) <= _HASHED_MAX:
        return False
    if values.hasnans:
        raise BadValue("a null among what is to be found by its place")
    if values.dtype.kind in "iufcmM" and not is_extension_array(values.array):
        plain = values.to_numpy(copy=True)
        plain.sort()
        again = bool((plain[1:] == plain[:-1]).any())
    else:
        again = len(set(decoder.each(list(values)))) < len(values)
    if again:
        raise BadValue("the same item twice among what is to be found by its place")
    return True


#: Up to this many items cannot take pandas long.
_HASHED_MAX = 1_000


def _periods(encoder: Encoder, values: Any, _path: str, _depth: int) -> list[Any]:
    return [encoder.content(numpy_arrays.bytes_of(values.asi8, sys.modules["numpy"])), values.freqstr]


def _periods_of(decoder: Decoder, reference: Any, freq: Any) -> Any:
    import pandas as pd

    ordinals = numpy_arrays.vector(decoder.content(reference), "<i8")
    return pd.arrays.PeriodArray(ordinals, dtype=pd.PeriodDtype(str(freq)))


def _intervals_of(decoder: Decoder, left: Any, right: Any, closed: Any) -> Any:
    import pandas as pd

    ends = [decoder.item(end) for end in (left, right)]
    if any(isinstance(end, pd.RangeIndex | pd.MultiIndex) or not isinstance(end, pd.Index) for end in ends):
        raise BadValue("intervals between something other than arrays")
    return pd.arrays.IntervalArray.from_arrays(ends[0], ends[1], closed)


def _end(index: Any) -> Any:
    """Return an end of intervals, as values: a range of pandas' is one only as an index."""
    import pandas as pd

    return pd.Index(index.to_numpy()) if isinstance(index, pd.RangeIndex) else index


#: pandas' arrays that are more than one column of values: class → what its tag holds.
_ARRAYS: dict[str, Callable[[Any, Any, str, int], list[Any]]] = {
    "DatetimeArray": _moments,
    "TimedeltaArray": lambda encoder, values, path, depth: [encoder.item(values.to_numpy(), path, depth)],
    "Categorical": _categories,
    "PeriodArray": _periods,
    "IntervalArray": lambda encoder, values, path, depth: [
        encoder.item(_end(values.left), path, depth), encoder.item(_end(values.right), path, depth), values.closed,
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
