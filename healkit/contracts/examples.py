"""Examples of a tool: what a call of it has to do, as data.

Three forms. `{"arguments": {…}, "result": …}`: the right result for these arguments. `{"arguments": {…}, "raises":
"ValueError"}`: the right exception. `{"call": "…"}` with either: Python source beside the tool's code, statements and a
last expression, for what arguments alone cannot say. With neither result nor raises, the tool only has to return.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping
from typing import Any

from healkit.errors import ExamplesInvalid, did_you_mean

_PARTS = ("arguments", "call", "result", "raises")
_SHOWN_CHARS = 80
_HINT = (
    'Write {"arguments": {…}, "result": …}, {"arguments": {…}, "raises": "ValueError"}, or "call": "…" in place of '
    "the arguments."
)


def checked_examples(examples: Iterable[Any], *, sql: bool = False) -> list[dict[str, Any]]:
    """Return the examples as they are; raise `ExamplesInvalid` for the first bad one, by number."""
    if isinstance(examples, str | Mapping):
        raise ExamplesInvalid(f"The examples must be a list, not a {type(examples).__name__}.", hint=_HINT)
    found = []
    for number, example in enumerate(examples, 1):
        if why := _wrong(example, sql):
            raise ExamplesInvalid(f"Example {number}, {_shown(example)}: {why}.", hint=_HINT)
        found.append(dict(example))
    return found


def _wrong(example: Any, sql: bool) -> str:
    """Return the fault of one example, or an empty text."""
    if not isinstance(example, Mapping):
        return f"it is a {type(example).__name__}, not a dict"
    for name in example:
        if name not in _PARTS:
            return f"{name!r} is no part of an example.{did_you_mean(str(name), _PARTS)}".removesuffix(".")
    if ("arguments" in example) == ("call" in example):
        return "it needs either arguments or a call, and not both"
    if "result" in example and "raises" in example:
        return "it cannot both return and raise"
    if "arguments" in example:
        arguments = example["arguments"]
        if not isinstance(arguments, Mapping) or not all(isinstance(name, str) for name in arguments):
            return "its arguments are no dict of names and values"
    elif sql:
        return "a SQL tool has no Python for a call to be beside; give it arguments"
    elif why := _wrong_call(example["call"], valued="result" in example):
        return why
    raises = example.get("raises", "Exception")
    if not isinstance(raises, str) or not all(part.isidentifier() for part in raises.split(".")):
        return f"raises={raises!r} is no exception's name"
    return ""


def _wrong_call(call: Any, *, valued: bool) -> str:
    if not isinstance(call, str):
        return f"its call is a {type(call).__name__}, not Python source"
    try:
        body = ast.parse(call).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"its call does not parse ({getattr(error, 'msg', None) or error})"
    if not body:
        return "its call is empty"
    if valued and not isinstance(body[-1], ast.Expr):
        return "its call does not end in an expression, so it has no result"
    return ""


def _shown(example: Any) -> str:
    text = (
        json.dumps(example, ensure_ascii=False, default=repr)
        if isinstance(example, Mapping)
        else repr(example)
    )
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
