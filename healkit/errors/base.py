"""Base of the errors, and errors of settings and lines."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from healkit.plain_text import untick, visible


def named(value: object) -> str:
    """Write what was given as a name: `'sales'`, `None`, `a DataFrame`."""
    return (
        repr(value) if value is None or isinstance(value, str | int | float) else f"a {type(value).__name__}"
    )


def check_text(what: str, value: object) -> None:
    """Raise `UsageInvalid` for a value that is no text. what: the argument's name."""
    if not isinstance(value, str):
        raise UsageInvalid(f"{what} must be text, not {named(value)}.")


def check_whole(what: str, value: object) -> None:
    """Raise `UsageInvalid` for a value that is no whole number. what: the argument's name."""
    if not isinstance(value, int):
        raise UsageInvalid(f"{what} must be a whole number, not {named(value)}.")


def near_misses(name: object, known: Iterable[str], limit: int = 3) -> list[str]:
    """Return up to `limit` of the known names that look like `name`, best first; none for what is no text."""
    if not isinstance(name, str):
        return []
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.6)
    return [by_folded[match] for match in found]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ` Did you mean 'fibonacci'?`, or an empty text when nothing is near."""
    found = near_misses(name, known)
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


class HealkitError(Exception):
    """Base of all errors that healkit raises on purpose.

    `code` is stable and machine-readable; `hint` is the next step; `log_id` is the ExecutionLog row of the call, where
    there was one. Backticks around code come off: a traceback and a terminal show them as they are.
    """

    code: str = "HEALKIT_ERROR"

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = untick(message)
        self.hint = untick(hint)
        super().__init__(self.message)
        self.log_id: int | None = None

    def __str__(self) -> str:
        return visible(f"{self.message} {self.hint}".rstrip())

    def _render_traceback_(self) -> list[str]:
        """Return one line for a notebook; IPython calls it instead of printing our stack (the log holds the rest)."""
        return [f"{type(self).__name__}: {self}"]


class ConfigError(HealkitError):
    """A setting that healkit cannot work with."""

    code = "CONFIG_INVALID"


class RulesInvalid(ConfigError):
    """A custom rule of the sanitiser, or a pattern of its allow-list, that cannot be used."""

    code = "RULES_INVALID"


class UsageInvalid(HealkitError):
    """A line that cannot be read: an unknown flag or subcommand, a quote that never closes."""

    code = "USAGE_INVALID"

    def _render_traceback_(self) -> list[str]:
        """Return the sentence alone: the reader typed a line, and raised nothing."""
        return [str(self)]
