"""Filters of the log: which executions are meant.

`Filters` is the one list of them. A method that takes it is decorated with `takes_filters`, so that a caller may also
give each by name; `parsing.read_filters` reads options as people type them, and `store.log_pages` makes SQL of them.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, TypeVar

from healkit.contracts.records import TRIED_ORIGINS, escaped
from healkit.errors import UsageInvalid, check_text, named

#: What executions are chosen by. The column has no REFUSED: such a row is a FAILURE with the code of a refused call.
STATUSES = ("SUCCESS", "FAILURE", "REFUSED", "RUNNING")
#: Words that people type for a status, as lists and panels show it → the status.
STATUS_WORDS = {
    **{status.casefold(): status for status in STATUSES},
    **dict.fromkeys(("succeeded", "ok", "done", "passed"), "SUCCESS"),
    **dict.fromkeys(("failed", "failures", "error", "errors"), "FAILURE"),
}


def status_of(word: str) -> str:
    """Return the status that a word stands for, in any case and with its mark; another word as it is."""
    return STATUS_WORDS.get(word.strip(" ✓✗…").casefold(), word)


#: An aware time (a naive one is local), a date (local midnight), or either in ISO 8601.
Moment = datetime | date | str

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Filters:
    """Choice of rows of the log; all filters that are given must hold.

    status: `SUCCESS`, `FAILURE`, `REFUSED` or `RUNNING`, in any case, or as it is shown (`failed`). The refused
    calls are among the failures.
    since, until: the row's time; until is exclusive.
    text: words in the traceback, each from its beginning, and phrases in double quotes (`store.full_text` says exactly
    what matches). trace: that execution and the calls it made of other tools. fingerprint: failures of that kind.
    run: all executions of that run. origin: who asked for it, such as `magic` or `trial`. tried: whether executions
    that only try code out (trials, searches) are meant too; naming their origin includes them in any case. refused:
    whether calls that were refused before any code ran are meant too; naming that status includes them in any case.
    """

    status: str | None = None
    tool: str | None = None
    persona: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    text: str | None = None
    trace: str | None = None
    fingerprint: str | None = None
    run: str | None = None
    origin: str | None = None
    tried: bool = True
    refused: bool = True

    def __post_init__(self) -> None:
        """Read a status as lists and panels show it; write characters as they are stored (`records.storable`)."""
        for name in ("status", "tool", "persona", "text", "trace", "fingerprint", "run", "origin"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        if self.status is not None:
            object.__setattr__(self, "status", status_of(self.status))
        for name in ("since", "until"):
            value = getattr(self, name)
            if not isinstance(value, date | str | None):
                raise UsageInvalid(f"{name} must be a time or a date, not {named(value)}.")
        for name in ("tool", "persona", "text", "trace", "fingerprint", "run", "origin"):
            value = getattr(self, name)
            if value is not None and (not value.isascii() or "\x00" in value):
                object.__setattr__(self, name, escaped(value))

    @property
    def leaves_out_tried(self) -> bool:
        """True when executions that only try code out are not meant."""
        return not self.tried and self.origin not in TRIED_ORIGINS

    @property
    def leaves_out_refused(self) -> bool:
        """True when calls that were refused before any code ran are not meant."""
        return not self.refused and self.status != "REFUSED"

    @property
    def given(self) -> dict[str, Any]:
        """Filters with a value, by name, without `tried` and `refused`."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: value for name, value in values.items() if value is not None and not isinstance(value, bool)
        }


#: The names of all filters.
NAMES = tuple(field.name for field in dataclasses.fields(Filters))
#: The filters that groups of failures, and sums of a tool's executions, can be chosen by.
GROUP_FILTERS = ("status", "tool", "persona", "since", "until", "fingerprint")
SUMMARY_FILTERS = ("tool", "persona", "since", "until")


def takes_filters(*names: str, **defaults: Any) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Let a method with a keyword `filters` also take each filter by name, and show the names in its signature.

    names: the filters that it takes, all by default. defaults: values of filters that are not given. The method
    raises `TypeError` for any other name.
    """
    known = names or NAMES

    def decorate(method: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(method)
        def with_filters(self: Any, *args: Any, filters: Filters | None = None, **options: Any) -> Result:
            named = {name: options.pop(name) for name in known if name in options}
            chosen = dataclasses.replace(filters or Filters(**defaults), **named)
            if beyond := sorted(chosen.given.keys() - set(known)):
                raise TypeError(f"{method.__name__}() takes no filter {beyond[0]!r}, only {', '.join(known)}")
            return method(self, *args, filters=chosen, **options)

        signature = inspect.signature(method)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != "filters"]
        shown = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(field.name, field.default),
                annotation=field.type,
            )
            for field in dataclasses.fields(Filters)
            if field.name in known
        ]
        before = [p for p in own if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        after = [p for p in own if p.kind is inspect.Parameter.KEYWORD_ONLY]
        with_filters.__signature__ = signature.replace(parameters=[*before, *shown, *after])  # type: ignore[attr-defined]  # read by inspect.signature
        return with_filters

    return decorate
