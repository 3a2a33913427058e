"""Suggestions: existing names like the one that failed.

They are read from the live exception and the innermost frame of the user's own code, while both exist; a stored failure
is only text. No foreign code runs for it: names come out of dicts, classes and folders, never out of a `__dir__` or a
`__getattr__`. The interpreter's own "Did you mean" knows names and attributes only, and one each; most often a key or a
column is wanted.
"""

from __future__ import annotations

import builtins
import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType, TracebackType
from typing import Any

from healkit.contracts.failure import KNOWN_MAX, NEAR_MAX
from healkit.errors import near_misses
from healkit.facts.labels import PRIVATE, similar
from healkit.facts.lookups import searched
from healkit.facts.scene import Scene, is_frame
from healkit.facts.values import mapping

_CANDIDATES_MAX = 2000
_NAME_MAX_CHARS = 60
_KEYWORD = re.compile(r"(?:(\w+)\.)?(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_NOT_IN_MODULE = re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'")


def suggestions(error: BaseException, innermost: TracebackType | None) -> tuple[list[str], list[str]]:
    """Return names like the missing one, best first, and the first names that exist.

    innermost: the traceback entry of the user's own frame. Both lists are short, and empty where the failure is not
    about a name; never raises.
    """
    try:
        wanted, known = _asked(error, innermost)
        names = _told(known)
        strict = isinstance(
            error, ImportError | AttributeError
        )  # among hundreds, one is always a little similar
        listed = wanted and isinstance(error, KeyError | TypeError)  # elsewhere there are hundreds
        near = near_misses(wanted, names, NEAR_MAX) if wanted else []
        near = [name for name in near if name != wanted and (not strict or similar(wanted, name))]
        return near, names[:KNOWN_MAX] if listed else []
    except Exception:  # noqa: BLE001 - without a guess there is no suggestion
        return [], []


def _asked(error: BaseException, innermost: TracebackType | None) -> tuple[str, Iterable[Any]]:
    """Return the missing name, and the existing names."""
    if isinstance(error, NameError):
        return str(error.name or ""), _in_scope(innermost)
    if isinstance(error, AttributeError):
        wanted = str(error.name or "")
        columns = _told(error.obj.columns[:_CANDIDATES_MAX].tolist()) if is_frame(error.obj) else []
        return wanted, columns if near_misses(wanted, columns) else _attributes(error.obj)
    if isinstance(error, KeyError) and error.args:
        return _keys(error, innermost)
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


def _in_scope(told: TracebackType | None) -> Iterator[str]:
    if told is not None:
        frame = told.tb_frame
        yield from frame.f_locals
        yield from frame.f_globals
    yield from vars(builtins)


def _attributes(value: object) -> Iterator[str]:
    """Yield the names in an object's and its classes' dicts, without running code of the object."""
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


def _keys(error: BaseException, told: TracebackType | None) -> tuple[str, Iterable[Any]]:
    """Return the missing key or label, and those of the object that was asked; empty where that is not certain."""
    if told is None:
        return "", ()
    scene = Scene(error, told)
    wanted, labels = searched(scene)
    if not wanted:
        owner, _ = mapping(scene)
        wanted, labels = (
            list(error.args),
            [] if owner is None else itertools.islice(dict.keys(owner), _CANDIDATES_MAX),
        )
    key = wanted[0] if len(wanted) == 1 else ""
    return (str(key), labels) if type(key) in {str, int, float, bool} else ("", ())


def _told(names: Iterable[Any]) -> list[str]:
    """Return those names that are short text and do not look like a secret or personal data."""
    found: dict[str, None] = {}
    for name in itertools.islice(names, _CANDIDATES_MAX):
        text = name if type(name) is str else repr(name) if type(name) in {int, float, bool} else ""
        if 0 < len(text) <= _NAME_MAX_CHARS and not PRIVATE.search(text):
            found[text] = None
    return list(found)
