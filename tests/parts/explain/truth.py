"""Check that an explanation names only what exists.

That is the user's own, or part of Python or a library.
"""

from __future__ import annotations

import ast
import builtins
import datetime
import functools
import importlib
import importlib.util
import keyword
import re
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from healkit.parts.explain.facts.values import PACKAGES

#: Words of libraries that may stand in an explanation as such: parameters, types, functions.
_WORDS = {
    "header",
    "aggfunc", "axis", "coerce", "columns", "default", "encoding", "errors", "format", "handle_unknown", "ignore",
    "left_on", "level", "lsuffix", "mixed", "na", "numeric_only", "on", "on_bad_lines", "right_on", "rsuffix",
    "sep", "sum", "warn", "Int64", "OneHotEncoder", "SimpleImputer", "getcwd", "listdir", "literal_eval",
    "isoformat", "self", "null", "true", "hk", "provide", "read", "write", "PATH", "LinearRegression", "fit", "nan",
    "vault", "grant", "NAME", "pip", "install", "latin", "cp1252", "utf", "rb", "timedelta", "days", "weeks",
    "month", "total_seconds", "extrasaction", "dateutil", "relativedelta", "_replace", "fieldnames", "defaultdict",
    "key", "parse_args", "exist_ok", "capture_output", "stderr", "SELECT", "FROM", "sqlite_master", "https", "http",
    "Europe", "Zurich", "tzdata", "with", "file", "r", "w", "a", "x", "b", "pl", "pc", "plt", "red", "o", "s", "ro",
    "ff8800", "scalex", "scaley", "v0_8", "vertical_relaxed", "promote_options", "permissive", "delimiter",
    "skiprows", "invalid_raise", "openpyxl", "xlsx", "cv", "token_pattern", "MinMaxScaler", "step__name", "records",
    "order", "frozen", "compression", "rt", "strict", "invalid_row_handler", "ParseOptions", "PAR1", "safe", "D",
    "h", "ME", "how", "c", "false", "b64encode", "done", "decision_function", "set_theme", "H", "z", "orange", "y",
    "_radius", "as_ordered", "contextmanager", "Generic", "utc", "shift_forward", "backslashreplace", "to_bytes",
    "big", "newline", "lines", "category", "sparse_output",
}  # fmt: skip
#: Modules of Python's own whose functions an explanation may name.
_MODULES = (
    "asyncio", "dataclasses", "datetime", "functools", "itertools", "json", "logging", "math", "os", "pathlib", "random", "re", "shutil",
    "subprocess", "time", "zoneinfo", "gzip", "pickle", "sqlite3",
)  # fmt: skip
#: Pieces of formats, as they are documented.
_TYPICAL = {
    "'utf-8'", "'7D'", "'utf-16'", "'cp1252'", " %H:%M", "pd.Timestamp('2024-01-31')", "%H:%M", "%d",
    "%m", "%Y", "%H", "%M", "%S", "%s", ",", ".0f", "10,.2f",
}  # fmt: skip
_NAME = re.compile(r"[^\W\d]\w*")


@functools.cache
def libraries() -> dict[frozenset[str], tuple[Any, ...]]:
    """Return names in the code → what of a library an explanation of it may name; of another one's code it may not."""
    import matplotlib.pyplot as plt  # they take seconds to load, and only slow tests ask
    import polars as pl
    import pyarrow.compute
    import sklearn.metrics

    return {
        frozenset(("matplotlib", "plt")): (sys.modules["matplotlib"], plt, plt.Axes, plt.Figure),
        frozenset(("polars", "pl")): (pl, pl.DataFrame, pl.LazyFrame, pl.Expr, type(pl.col("a").str)),
        frozenset(("pyarrow", "pa", "pc", "pq")): (pyarrow, pyarrow.compute, pyarrow.Table, pyarrow.Array),
        frozenset(("sklearn",)): (sklearn.metrics,),
    }


@functools.cache
def library_words() -> frozenset[str]:
    """Collect the words of Python, pandas and numpy that an explanation may name."""
    owners = [
        builtins,
        str,
        list,
        dict,
        set,
        bytes,
        pd,
        pd.DataFrame,
        pd.Series,
        pd.Index,
        np,
        np.linalg,
        np.ndarray,
        *(importlib.import_module(name) for name in _MODULES),
        datetime.datetime,
    ]
    owners += [type(pd.Series(["a"]).str), type(pd.Series(pd.to_datetime(["2024-01-01"])).dt)]
    found = {name for owner in owners for name in dir(owner)}
    found |= {*keyword.kwlist, *sys.stdlib_module_names}
    return frozenset(found | _WORDS | {"pd", "np", "iloc", "loc", "at", "cat", "str", "dt", "add_categories"})


def untrue(texts: Iterable[str], code: str, names: dict[str, Any], message: str) -> list[str]:
    """Return the pieces in backquotes that are neither in the code, nor in its values or message, nor a library's."""
    plain_code = re.sub(r"\\x([0-9a-f]{2})", lambda told: chr(int(told[1], 16)), code)  # bytes as text
    wide_code = plain_code.encode("latin-1", "ignore").decode("utf-8", "ignore")
    told = " ".join([code, plain_code, wide_code, message, *known_values(names), *imported_names(code)])
    mine = set(_NAME.findall(told))
    owners = [one for used, parts in libraries().items() if used & mine for one in parts]
    owners += [type(value) for value in names.values()]
    known = library_words() | {name for owner in owners for name in dir(owner)} | mine | set(PACKAGES)
    wrong = []
    for text in texts:
        for piece in re.findall(r"`([^`]*)`", text):
            plain = piece.replace('"', "'").replace("‸", "")  # the mark of a place
            if (
                piece in _TYPICAL
                or plain in told.replace('"', "'")
                or is_module(piece)
                or piece.rpartition(" ")[2] in PACKAGES.values()
            ):
                continue
            words = set(_NAME.findall(piece)) - known
            words -= set(_NAME.findall(" ".join(re.findall(r"(?:for|lambda) ([\w, ]+)", piece))))  # its own
            numbers = {
                n
                for n in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", piece)
                if n not in told and n not in {"0", "1"}
            }
            if words or numbers:
                wrong.append(f"{piece} in {text!r}")
    return wrong


def is_module(name: str) -> bool:
    """Return whether a module of that name can be imported here."""
    try:
        return all(map(str.isidentifier, name.split("."))) and importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def imported_names(code: str) -> list[str]:
    """Collect what the modules have from which the code imports names."""
    modules = [
        node.module for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom) and node.module
    ]
    return [name for module in modules for name in dir(sys.modules.get(module))]


def known_values(names: dict[str, Any]) -> list[str]:
    """Write out the values of an example: reprs, labels, types and shapes."""
    found: list[str] = []
    for name, value in list(names.items()):
        if name.startswith("__"):
            continue
        found.append(type(value).__name__)
        if isinstance(value, pd.DataFrame):
            found += [repr(list(value.columns)), repr(value.index.tolist()), str(value.shape)]
            found.append(repr(value.to_dict("list")))
            found += [str(dtype) for dtype in value.dtypes]
            found += [str(value[column].tolist()) for column in value.columns if value.columns.is_unique]
        elif isinstance(value, pd.Series):
            found += [repr(value.tolist()), repr(value.index.tolist()), str(value.shape), str(value.dtype)]
        elif isinstance(value, np.ndarray):
            found += [repr(value.tolist()), str(value.shape), str(value.dtype)]
        else:
            found.append(repr(value))
    return found


def runs(expression: str, names: dict[str, Any]) -> bool:
    """Return whether a suggested expression or statement runs where the example failed; one with `…` is not tried."""
    if "…" in expression or expression.startswith((".", "%")) or is_module(expression):
        return True
    try:
        ast.parse(expression)
    except SyntaxError:
        return False
    exec(expression, dict(names))
    return True
