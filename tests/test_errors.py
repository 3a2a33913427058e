"""Errors: drawn as the tree they are, imported from one place."""

from __future__ import annotations

import re

from healkit import errors
from healkit.core.contracts.failure import Failure

_ERRORS = {
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.HealkitError)
}


def test_the_tree_shows_every_error_with_base_and_code() -> None:
    drawn, above = {}, ["HealkitError"]
    for line in (errors.__doc__ or "").splitlines():
        if (found := re.match(r"((?:│   |    )*)[├└]── (\w+)\s+(.*)", line)) is None:
            continue
        depth = len(found[1]) // 4 + 1
        above = [*above[:depth], found[2]]
        drawn[found[2]] = (above[depth - 1], found[3].split()[0])
    own_codes = {kind for kind in _ERRORS - {errors.HealkitError} if "code" in vars(kind)}
    assert drawn.keys() == {kind.__name__ for kind in _ERRORS} - {"HealkitError"}
    for kind in own_codes:
        assert drawn[kind.__name__] == (kind.__mro__[1].__name__, kind.code)


def test_no_error_shows_raw_backticks() -> None:
    """U7: a traceback and a terminal show a message as it is, so `n` stood there with its backticks."""
    for kind in _ERRORS - {errors.ToolExecutionError}:  # its message is the tool's own
        code = ("BODY_TOO_LARGE",) if kind is errors.RequestRefused else ()
        error = kind(
            *code, "`n` is missing; `0` and `None` are not.", hint="Run `healkit doctor`, or add a `,`."
        )
        told = "'n' is missing; 0 and None are not. Run healkit doctor, or add a ','."
        assert str(error) == told, kind
        assert (error._render_traceback_(), error.args) == (
            [told if kind is errors.UsageInvalid else f"{kind.__name__}: {told}"],
            (error.message,),
        )


def test_a_tools_own_message_stays_as_it_is() -> None:
    failure = Failure("TOOL_EXCEPTION", "ValueError", "use `a` and `b`", "")
    assert (
        str(errors.ToolExecutionError("f v1", failure, 1, "")) == "f v1 failed: ValueError: use `a` and `b`"
    )
