"""Limits of the work on one text and on one request.

Keywords alone would cost seconds a megabyte, and each number takes the phone library 30 µs. So the functions of rules
are tried at a limited number of keywords, which grows with the text; costly checks have such a limit too. Of 96 real
texts of 0.1 to 1 MB, none used more than three quarters. What is beyond is hidden unjudged. A server shares one limit
among all texts of a request, because many small texts cost as much as a large one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Tries in a text, and later around what was hidden; costly checks. Each: at least, and characters for one more.
_TRIES, _LATER_TRIES, _CHECKS = (6_000, 80), (4_000, 320), (1_000, 2_000)
_TRIES_LEFT = ContextVar("_TRIES_LEFT", default=_TRIES[0])
_CHECKS_LEFT = ContextVar("_CHECKS_LEFT", default=_CHECKS[0])
_SHARED: ContextVar[list[int] | None] = ContextVar("_SHARED", default=None)


@contextmanager
def shared_limit(size: int) -> Iterator[None]:
    """Share one limit, of a text of `size` characters, among all texts that are cleaned meanwhile in this thread."""
    token = _SHARED.set([_of(size, _TRIES) + _of(size, _LATER_TRIES), _of(size, _CHECKS)])
    try:
        yield
    finally:
        _SHARED.reset(token)


def allow(size: int) -> None:
    """Allow the work on a text to come, of that many characters."""
    _TRIES_LEFT.set(_of(size, _TRIES))
    _CHECKS_LEFT.set(_of(size, _CHECKS))


def allow_later(size: int) -> None:
    """Allow the later rounds on the text at hand."""
    _TRIES_LEFT.set(_of(size, _LATER_TRIES))


def tries_left() -> int:
    """Return how many more keywords of the text at hand may be tried."""
    shared = _SHARED.get()
    return _TRIES_LEFT.get() if shared is None else min(_TRIES_LEFT.get(), shared[0])


def spend_tries(count: int) -> None:
    """Count the keywords that were tried."""
    _TRIES_LEFT.set(_TRIES_LEFT.get() - count)
    if (shared := _SHARED.get()) is not None:
        shared[0] -= count


def may_check() -> bool:
    """Count one costly check; return False where none is left."""
    shared = _SHARED.get()
    left = _CHECKS_LEFT.get()
    if left <= 0 or (shared is not None and shared[1] <= 0):
        return False
    _CHECKS_LEFT.set(left - 1)
    if shared is not None:
        shared[1] -= 1
    return True


def _of(size: int, allowed: tuple[int, int]) -> int:
    fewest, chars_a_try = allowed
    return fewest + size // chars_a_try
