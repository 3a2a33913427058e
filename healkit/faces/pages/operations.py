"""Requests of a page: their form, arguments and errors."""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from healkit.app import Healkit
from healkit.errors import HealkitError, UsageInvalid
from healkit.faces.pages.page_data import PageData

#: An operation takes named arguments from JSON, and returns a JSON value.
Operation = Callable[..., Any]

#: Operations whose answer contains code to be inserted, with the keys of that code, which is not changed.
EXACT = {"code": ("value",), "heal": ("edit",)}
#: A database has no larger numbers.
_INTEGER_BITS = 62


class Operations:
    """Requests of a page on one subject: `NAMES` are the methods, which the page calls by `PREFIX` and name."""

    PREFIX = ""
    NAMES: tuple[str, ...] = ()

    def __init__(self, healkit: Healkit, recorded: PageData) -> None:
        self._healkit, self._recorded = healkit, recorded

    @property
    def operations(self) -> dict[str, Operation]:
        """Operations that a page may call."""
        return {f"{self.PREFIX}{name}": getattr(self, name) for name in self.NAMES}


def taken(operation: Operation, op: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request in the operation's form; raise `UsageInvalid` for any other."""
    parameters, hints = inspect.signature(operation).parameters, get_type_hints(operation)
    missing = [
        name
        for name, parameter in parameters.items()
        if name not in arguments and parameter.default is parameter.empty
    ]
    wrong = [f"{name!r} is missing" for name in missing]
    wrong += [f"{name[:50]!r} is unknown" for name in arguments if name not in parameters]
    for name in parameters.keys() & arguments.keys():
        try:
            json.dumps(arguments[name], ensure_ascii=False).encode()
            msgspec.convert(arguments[name], hints.get(name, Any))
        except UnicodeEncodeError:
            wrong.append(f"{name!r} holds half a character")
        except msgspec.ValidationError as error:
            wrong.append(f"{name!r}: {error}")
        if type(arguments[name]) is int and arguments[name].bit_length() > _INTEGER_BITS:
            wrong.append(f"{name!r} is too large")
    if wrong:
        raise UsageInvalid(
            f"The page asked for {op!r} in a way that this panel does not know: {'; '.join(sorted(wrong))}.",
            hint="Reload the page, or run the cell again for a new panel.",
        )
    return arguments


def described(error: Exception) -> dict[str, Any]:
    """Return an exception for the page: healkit's own in one sentence, any other with its traceback folded."""
    if isinstance(error, HealkitError):
        return {"code": error.code, "message": error.message, "hint": error.hint, "detail": ""}
    detail = "".join(traceback.format_exception(error))
    return {
        "code": "PANEL_ERROR",
        "message": f"{type(error).__name__}: {error}",
        "hint": "This is a fault of healkit's, not of your code.",
        "detail": detail,
    }
