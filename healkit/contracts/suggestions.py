"""Suggestions: existing names like the one that failed.

They are read from the live exception and the innermost frame of the user's own code, while both exist; a stored failure
is only text. No foreign code runs for it: names come out of dicts, classes and folders, never out of a `__dir__` or a
`__getattr__`. The interpreter's own "Did you mean" knows names and attributes only, and one each; most often a key or a
column is wanted.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
import os
import re
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType, TracebackType
from typing import Any

from healkit.errors import near_misses

NEAR_MAX, KNOWN_MAX = 3, 8
_CANDIDATES_MAX = 2000
_NAME_MAX_CHARS = 60
#: Texts that may be a token, a person's number or an address: never suggested as names.
_PRIVATE = re.compile(r"@|\d{6}|(?=\w*\d)(?=\w*[A-Za-z])[\w-]{12,}")
_KEYWORD = re.compile(r"(?:(\w+)\.)?(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_NOT_IN_MODULE = re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'")
_COLUMN = re.compile(r"(?:Column not found: |\[?')?(.*?)(?:'\] not in index|' not in index)?\Z", re.DOTALL)


def suggestions(error: BaseException, innermost: TracebackType | None) -> tuple[list[str], list[str]]:
    """Return names like the missing one, best first, and the first names that exist.

    innermost: the traceback entry of the user's own frame. Both lists are short, and empty where the failure is not
    about a name; never raises.
    """
    try:
        wanted, known = _asked(error, innermost)
        names = _told(known)
        listed = wanted and isinstance(error, KeyError | TypeError)  # elsewhere there are hundreds
        return near_misses(wanted, names, NEAR_MAX) if wanted else [], names[:KNOWN_MAX] if listed else []
    except Exception:  # noqa: BLE001 - a failed guess is no suggestion
        return [], []


def _asked(error: BaseException, innermost: TracebackType | None) -> tuple[str, Iterable[Any]]:
    """Return the missing name, and the existing names."""
    if isinstance(error, NameError):
        return str(error.name or ""), _in_scope(innermost)
    if isinstance(error, AttributeError):
        wanted = str(error.name or "")
        columns = _told(_keys_of(error.obj)) if _is_frame(error.obj) else []
        return wanted, columns if near_misses(wanted, columns) else _attributes(error.obj)
    if isinstance(error, KeyError) and error.args:
        key = error.args[0] if len(error.args) == 1 else ""
        if type(key) not in {str, int, float, bool}:
            return "", ()
        return _column(str(key)), _keys(key, innermost)
    if isinstance(error, ModuleNotFoundError):
        return str(error.name or ""), sys.stdlib_module_names
    if isinstance(error, ImportError) and (match := _NOT_IN_MODULE.search(str(error))):
        return match[1], _attributes(sys.modules.get(match[2]))
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        folder, name = os.path.split(error.filename)
        with os.scandir(folder or os.curdir) as found:
            return name, [entry.name for entry in itertools.islice(found, _CANDIDATES_MAX)]
    if type(error) is TypeError and (match := _KEYWORD.search(str(error))):
        return match[3], _parameters(match[2], innermost)
    return "", ()


def _column(text: str) -> str:
    """Return the column's name from pandas' message."""
    match = _COLUMN.match(text)
    return match[1] if match else text


def _in_scope(told: TracebackType | None) -> Iterator[str]:
    if told is not None:
        frame = told.tb_frame
        yield from frame.f_locals
        yield from frame.f_globals
    yield from vars(builtins)


def _attributes(value: object) -> Iterator[str]:
    """Yield the names in an object's and its classes' dicts, without asking the object."""
    if type(value) is ModuleType:
        yield from (name for name in vars(value) if not name.startswith("_"))
        return
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = {}
    if type(own) is dict:
        yield from (name for name in own if type(name) is str)
    for kind in type.mro(type(value)):
        yield from (name for name in vars(kind) if not name.startswith("_"))


def _parameters(function: str, told: TracebackType | None) -> Iterator[str]:
    if told is None:
        return
    frame = told.tb_frame
    for scope in (frame.f_locals, frame.f_globals):
        found = scope.get(function)
        if type(found) is FunctionType:
            code = found.__code__
            yield from code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            return


def _keys(wanted: object, told: TracebackType | None) -> Iterator[object]:
    """Yield the keys of the failing expression's object; else of all objects with a key like the missing one."""
    if told is None:
        return
    container = _subscripted(told)
    if container is not None:
        yield from _keys_of(container)
        return
    frame = told.tb_frame
    for value in [*frame.f_locals.values(), *(frame.f_globals.values() if frame.f_back is None else ())]:
        keys = list(_keys_of(value))
        if keys and near_misses(_column(str(wanted)), [str(key) for key in keys if type(key) is str]):
            yield from keys
            return
        if _is_frame(value):
            yield from keys


def _keys_of(value: object) -> Iterator[object]:
    if issubclass(type(value), dict):
        yield from itertools.islice(dict.keys(value), _CANDIDATES_MAX)  # type: ignore[arg-type]  # `issubclass` says so, which mypy does not see
    elif _is_frame(value):
        yield from value.columns[:_CANDIDATES_MAX].tolist()  # type: ignore[attr-defined]  # a DataFrame, as `_is_frame` found without importing pandas


def _is_frame(value: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and type(value) is getattr(pandas, "DataFrame", None)


def _subscripted(told: TracebackType) -> object | None:
    """Return the object before the brackets of the failing expression, if reading it runs no code."""
    positions = list(told.tb_frame.f_code.co_positions())
    line, end_line, start, end = positions[told.tb_lasti // 2]
    if line is None or line != end_line or start is None or end is None:
        return None
    text = linecache.getline(told.tb_frame.f_code.co_filename, line).encode()[start:end].decode().strip()
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    return _value(node.value, told) if isinstance(node, ast.Subscript) else None


def _value(node: ast.expr, told: TracebackType) -> object | None:
    frame = told.tb_frame
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Subscript):
        outer = _value(node.value, told)
        key = node.slice.value if isinstance(node.slice, ast.Constant) else _name(node.slice, told)
        if type(outer) is dict:
            return outer.get(key)
        if type(outer) in {list, tuple} and type(key) is int:
            found: object = outer[key]  # type: ignore[index]  # the types were looked at, which mypy does not see
            return found
    return None


def _name(node: ast.expr, told: TracebackType) -> object | None:
    found = _value(node, told) if isinstance(node, ast.Name) else None
    return found if type(found) in {str, int} else None


def _told(names: Iterable[Any]) -> list[str]:
    """Return those names that are text, short, and no secret or personal data."""
    found: dict[str, None] = {}
    for name in itertools.islice(names, _CANDIDATES_MAX):
        text = name if type(name) is str else repr(name) if type(name) in {int, float, bool} else ""
        if 0 < len(text) <= _NAME_MAX_CHARS and not _PRIVATE.search(text):
            found[text] = None
    return list(found)
