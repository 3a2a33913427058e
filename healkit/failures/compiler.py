"""Messages of the Python compiler about a text."""

from __future__ import annotations

import warnings
from typing import NamedTuple


class CompilerMessage(NamedTuple):
    """Why a text does not compile: the message, and the line (from 1) and column (characters from 0) where it stops."""

    message: str
    line: int
    column: int
    end_line: int = 0
    end_column: int = 0


def compiler_message(text: str) -> CompilerMessage | None:
    """Return what the compiler says against a text, None if it compiles; never raises and runs nothing.

    Warnings are left aside: a filter that turns them into errors would refuse what Python takes.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<draft>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return CompilerMessage(
            error.msg or "invalid syntax",
            error.lineno or 1,
            max(0, (error.offset or 1) - 1),
            error.end_lineno or 0,
            max(0, (error.end_offset or 1) - 1),
        )
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return CompilerMessage(str(error), 1, 0)
    return None
