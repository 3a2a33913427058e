"""Equality of values: what a check asks for, and what came.

Frames, series and indexes are compared as `pandas.testing` does: dtypes, labels and order count, floats may differ by
`RTOL` and `ATOL`. Only the frequency of an index is left out, because most operations lose it. Arrays are compared as
`numpy.testing` does, with their shape and dtype and the same tolerances. NaN equals NaN everywhere.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from healkit.contracts.encoding import is_from_library

#: Tolerances of floats in frames and arrays, those of `pandas.testing`.
RTOL, ATOL = 1e-5, 1e-8
#: Tolerances of numbers by themselves: nine digits.
_NUMBER_RTOL, _NUMBER_ATOL = 1e-9, 1e-12
#: Longest text on a difference.
_SAID_CHARS = 300


def equal(expected: Any, found: Any) -> bool:
    """Return whether a value meets the expected one; False too where that cannot be told."""
    try:
        return _equal(expected, found)
    except (
        BaseException
    ) as error:  # classes of a library or a tool raise what they like when they are compared
        if not is_from_library(error):
            raise
        return False


def difference(expected: Any, found: Any) -> str:
    """Return in one line how two frames, series, indexes or arrays differ; empty where that says nothing."""
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


def _equal(expected: Any, found: Any) -> bool:
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
    if hasattr(expected, "equals"):  # a table of Arrow or polars
        return bool(expected.equals(found))
    return expected is found or bool(expected == found)


def _same_number(expected: float, found: float) -> bool:
    if isinstance(expected, int) and isinstance(found, int):
        return expected == found
    if math.isnan(expected):
        return math.isnan(found)
    return math.isclose(expected, found, rel_tol=_NUMBER_RTOL, abs_tol=_NUMBER_ATOL)


def _scalar(value: Any) -> Any:
    """Return a number of numpy's as Python's; any other value as it is."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.bool_ | numpy.integer | numpy.floating):
        return value.item()
    return value


def _pandas_compare(expected: Any) -> Any:
    """Return what raises `AssertionError` for two values of pandas that differ; None for another value."""
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


def _numpy_compare(expected: Any) -> Any:
    """Return what raises `AssertionError` for two arrays that differ; None for another value."""
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
    for place, (one, other) in enumerate(zip(wanted.ravel().tolist(), found.ravel().tolist(), strict=True)):
        if not _equal(one, other):
            raise AssertionError(f"item {place} is different: found {other!r}, wanted {one!r}")
