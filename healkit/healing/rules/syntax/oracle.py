"""Whether Python can read a text, and where it stops."""

from __future__ import annotations

import warnings
from typing import NamedTuple


class Complaint(NamedTuple):
    """Why a text is no Python: the message, the line (from 1) and the column (characters from 0) where it stops."""

    message: str
    line: int
    column: int
    end_line: int = 0
    end_column: int = 0


def complaint(text: str) -> Complaint | None:
    """What the compiler says of a text; None where it is content. Never raises, never runs anything.

    The warnings that the compiler gives on the way are left aside: a filter that makes errors of them would have it
    refuse what Python takes.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<draft>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return Complaint(
            error.msg or "invalid syntax",
            error.lineno or 1,
            max(0, (error.offset or 1) - 1),
            error.end_lineno or 0,
            max(0, (error.end_offset or 1) - 1),
        )
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return Complaint(str(error), 1, 0)
    return None
