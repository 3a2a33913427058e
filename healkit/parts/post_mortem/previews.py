"""Preview of a value: type, shape, and how its text begins.

A card below a failing cell appears automatically, while the user works. So it must not run the user's code: a
`__repr__` may never end, return a gigabyte, or send a request. A preview reads only a little of the interpreter's own
types, and of numpy's and pandas'. For a foreign object it shows the class and the content of its `__dict__`. To get the
true repr, request it with a time limit (`Execution.post_mortem`).
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import itertools
import pathlib
import sys
import types
import uuid
from typing import TYPE_CHECKING, Any

from healkit.core.contracts.failure import Local
from healkit.core.wire.encoding import int_text

if TYPE_CHECKING:
    from collections.abc import Collection

TEXT_MAX_CHARS = 120
_ITEMS_MAX, _DEPTH_MAX = 6, 3
_BITS_MAX = 400

_SHORT = {
    bool, float, complex, type(None), type(Ellipsis), range, datetime.date, datetime.datetime, datetime.time,
    datetime.timedelta, uuid.UUID, pathlib.PosixPath, pathlib.PurePosixPath, pathlib.WindowsPath,
}  # fmt: skip
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
}
_qualname_of, _module_of = type.__dict__["__qualname__"].__get__, type.__dict__["__module__"].__get__


def preview(name: str, value: object) -> Local:
    """Return a variable as a `Local`; takes microseconds for any value, and never raises."""
    try:
        shape, text = _scientific(value) or (None, _text(value, 0))
    except Exception:  # noqa: BLE001 - whatever it was that lay in there
        shape, text = None, f"<{type_name(value)} object>"
    if len(text) > TEXT_MAX_CHARS:
        text = text[: TEXT_MAX_CHARS - 1] + "…"
    text = text.encode(errors="backslashreplace").decode()
    return Local(name[:200], type_name(value), text, shape)


def type_name(value: object) -> str:
    """Return a name such as `pandas.DataFrame`; does not run code of a metaclass."""
    kind = type(value)
    module, name = module_of(kind), str(_qualname_of(kind))[:200]
    if type(module) is not str or module in {"builtins", "__main__"} or module.startswith("__healkit"):
        return name
    return f"{module}.{name}"[:200]


def module_of(kind: type) -> Any:
    """Return a class's module; the package if it also has the class: pandas 2 calls itself `pandas.core.frame`."""
    module = _module_of(kind)
    if type(module) is str and "." in module:
        package = module.partition(".")[0]
        top_module = sys.modules.get(package)
        if type(top_module) is types.ModuleType and vars(top_module).get(_qualname_of(kind)) is kind:
            return package
    return module


def _text(value: Any, depth: int) -> str:
    kind = type(value)
    if kind is str or kind is bytes:
        cut = value[:TEXT_MAX_CHARS]
        return repr(cut) if len(cut) == len(value) else f"{cut!r}… [{len(value):,} long]"
    if kind is int:
        return int_text(value, _BITS_MAX)
    if kind in _SHORT or (kind in {decimal.Decimal, fractions.Fraction} and sys.getsizeof(value) < 500):
        return repr(value)
    if kind in _BRACKETS:
        return _items(value, kind, depth)
    if issubclass(kind, dict):
        return _mapping(value, kind, depth)
    if kind in {types.FunctionType, types.BuiltinFunctionType}:
        return f"<function {value.__name__}>"
    if kind is types.ModuleType:
        return f"<module {vars(value).get('__name__', '?')}>"
    if issubclass(kind, type):
        return f"<class {_qualname_of(value)}>"
    return _stranger(value, depth)


def _items(value: Collection[object], kind: type, depth: int) -> str:
    opening, closing = _BRACKETS[kind]
    if not value:
        return "set()" if kind is set else opening + closing
    if depth >= _DEPTH_MAX:
        return f"{opening}…{closing}"
    parts = [_text(item, depth + 1) for item in itertools.islice(value, _ITEMS_MAX)]
    comma = "," if kind is tuple and len(value) == 1 else ""
    return opening + ", ".join(parts + ["…"] * (len(value) > _ITEMS_MAX)) + comma + closing


def _mapping(value: dict[Any, Any], kind: type, depth: int) -> str:
    name = "" if kind is dict else f"{_qualname_of(kind)} "
    if depth >= _DEPTH_MAX:
        return f"{name}{{…}}"
    items = itertools.islice(dict.items(value), _ITEMS_MAX)
    parts = [f"{_text(key, depth + 1)}: {_text(item, depth + 1)}" for key, item in items]
    return name + "{" + ", ".join(parts + ["…"] * (dict.__len__(value) > _ITEMS_MAX)) + "}"


def _stranger(value: object, depth: int) -> str:
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        attributes = None
    if type(attributes) is not dict or not attributes or depth >= _DEPTH_MAX - 1:
        return f"<{type_name(value)} object>"
    parts = [
        f"{key}={_text(item, depth + 2)}" for key, item in itertools.islice(attributes.items(), _ITEMS_MAX)
    ]
    return f"<{type_name(value)} object: {', '.join(parts)}{', …' if len(attributes) > _ITEMS_MAX else ''}>"


def _scientific(value: Any) -> tuple[list[int] | None, str] | None:
    """Preview arrays by their first values and tables by their columns; None for anything else."""
    kind, numpy, pandas = type(value), sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and kind is getattr(numpy, "ndarray", None):
        return list(value.shape), f"{value.dtype} {_first(value.flat[:_ITEMS_MAX].tolist(), value.size)}"
    if numpy is not None and issubclass(kind, getattr(numpy, "generic", ())):
        return None, _text(value.item(), 0)
    if pandas is not None and kind is getattr(pandas, "DataFrame", None):
        return list(value.shape), f"columns {_first(value.columns[:_ITEMS_MAX].tolist(), value.shape[1])}"
    if pandas is not None and kind is getattr(pandas, "Series", None):
        return list(value.shape), f"{value.dtype} {_first(value.iloc[:_ITEMS_MAX].tolist(), len(value))}"
    return None


def _first(items: list[Any], count: int) -> str:
    parts = [_text(item, 1) for item in items]
    return "[" + ", ".join(parts + ["…"] * (count > _ITEMS_MAX)) + "]"
