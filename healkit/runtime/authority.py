"""Authority of an execution that another one calls.

A nested call runs with the intersection of its caller's grants in force and the callee's own: a tool gains nothing by
being called, and a caller nothing by calling. That is the rule of a stack walk (Java's `AccessController`, .NET's code
access security), applied once for each call, because what is in force goes down with it. A tool whose owner marked it
with `own_grants` keeps its own, as a SECURITY DEFINER function of a database does.
"""

from __future__ import annotations

import fnmatch
import math
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from healkit.config import Config
from healkit.contracts.execution import Grants
from healkit.errors import CallRefused
from healkit.workers.interpreters import package_names

if TYPE_CHECKING:
    from healkit.workers.worker import Worker  # it loads what starts workers, which no row waits for

_WILDCARDS = frozenset("*?[")
#: Stands between patterns of which all must match.
_AND = " & "


class Caller:
    """Execution that calls others: its grants in force, and what it has left of its limits.

    Made with the limits in force for it. above: the execution that has called it, if one has. `acted` is True once it,
    or one that it called, began a tool with side effects.
    """

    def __init__(self, grants: Grants, timeout_s: float, cpu_s: int, above: Caller | None = None) -> None:
        self.grants = grants
        self.acted = False
        self._above = above
        self._timeout_s, self._cpu_s = timeout_s, cpu_s
        self._ends = time.monotonic() + timeout_s
        self._worker: Worker | None = None
        self._started_cpu_s = 0.0
        self._nested_cpu_s = 0.0
        self._lock = threading.Lock()

    def act(self) -> None:
        """Note that a tool with side effects begins on its behalf, for those above it too."""
        caller: Caller | None = self
        while caller is not None:
            caller.acted, caller = True, caller._above

    def start(self, worker: Worker) -> None:
        """Count from now on, what this worker uses; called on a thread, when it gets the work."""
        self._ends = time.monotonic() + self._timeout_s
        self._worker, self._started_cpu_s = worker, worker.cpu_used_s

    @property
    def time_left_s(self) -> float:
        """Wall time until its deadline; negative after it."""
        return self._ends - time.monotonic()

    @property
    def cpu_used_s(self) -> float:
        """Processor time of its worker and of the calls below it that have ended.

        A worker that has ended by itself cannot be asked any more: all that its limit allows is counted.
        """
        with self._lock:
            if self._worker is None:
                return self._nested_cpu_s
            own_s = self._worker.cpu_used_s - self._started_cpu_s if self._worker.alive else self._cpu_s
            return own_s + self._nested_cpu_s

    @property
    def cpu_left_s(self) -> float:
        """Processor time that its limit leaves."""
        return self._cpu_s - self.cpu_used_s

    def charge(self, caller: Caller) -> None:
        """Count what this execution has used for the one that called it; on a thread, before its worker is ended."""
        used_s = self.cpu_used_s
        with caller._lock:
            caller._nested_cpu_s += used_s


def allows(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of the grants `calls` allows that name; of a pattern `a & b` both must match."""
    return any(all(fnmatch.fnmatchcase(name, part) for part in pattern.split(_AND)) for pattern in patterns)


def reaches(patterns: Iterable[str], server: str) -> bool:
    """Return whether one of the grants `calls` names that server, whatever the tool."""
    return allows(
        (_AND.join(part.partition(".")[0] for part in pattern.split(_AND)) for pattern in patterns), server
    )


def effective(own: Grants, caller: Grants, config: Config) -> Grants:
    """Return the grants in force for a tool with its `own` grants, called by one that runs with the `caller`'s.

    Raises `CallRefused` where it runs in another interpreter that the caller may not use.
    """
    if own.own_grants:
        return own
    if own.python is not None and own.python != caller.python:
        raise CallRefused(
            f"It runs in another interpreter ({own.python!r}), which its caller may not use.",
            hint="Grant the caller the same python=, or mark the tool that is called: own_grants=True.",
        )
    write = _paths(own.write, caller.write)
    read = _paths((*own.read, *own.write), (*caller.read, *caller.write))
    return Grants(
        read=tuple(path for path in read if not any(_is_within(path, folder) for folder in write)),
        write=write,
        calls=_calls(own, caller),
        memory_mb=_smaller(own.memory_mb, caller.memory_mb, config.memory_mb),
        cpu_s=_smaller(own.cpu_s, caller.cpu_s, config.cpu_s),
        timeout_s=_smaller(own.timeout_s, caller.timeout_s, config.timeout_s),
        packages=_packages(own, caller),
        python=own.python,
    )


class Bounds(Protocol):
    """Bounds of an execution, as its request has them.

    `caller` is the execution that calls it, `within` the grants of the nested execution that it repeats, `timeout_s`
    the wall time that was asked for, which for a nested call can only be shorter.
    """

    @property
    def caller(self) -> Caller | None: ...
    @property
    def within(self) -> Grants | None: ...
    @property
    def timeout_s(self) -> float | None: ...


def bounded(own: Grants, bounds: Bounds, config: Config) -> tuple[Grants, float]:
    """Return the grants in force for an execution of a tool with its `own` grants, and its wall time in seconds.

    Raises `CallRefused` where its caller has nothing left, and as `effective` does.
    """
    asked_s, caller = bounds.timeout_s, bounds.caller
    grants = own if bounds.within is None else effective(own, bounds.within, config)
    if caller is None:
        return grants, asked_s or grants.timeout_s or config.timeout_s
    grants, left_s = effective(grants, caller.grants, config), caller.time_left_s
    if left_s <= 0:
        raise CallRefused("Its caller has no time left.")
    if not grants.own_grants:
        cpu_left_s = math.ceil(caller.cpu_left_s)
        if cpu_left_s <= 0:
            raise CallRefused("Its caller has used up its processor time.")
        if cpu_left_s < (grants.cpu_s or config.cpu_s):
            grants = msgspec.structs.replace(grants, cpu_s=cpu_left_s)
    return grants, min(grants.timeout_s or config.timeout_s, asked_s or left_s, left_s)


def _paths(own: Iterable[str], caller: Iterable[str]) -> tuple[str, ...]:
    """Return what lies in both: of `/data` and `/data/a` the inner one, and none inside another."""
    caller = tuple(caller)
    shared = dict.fromkeys(
        mine if _is_within(mine, theirs) else theirs
        for mine in own
        for theirs in caller
        if _is_within(mine, theirs) or _is_within(theirs, mine)
    )
    return tuple(
        path for path in shared if not any(path != other and _is_within(path, other) for other in shared)
    )


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _calls(own: Grants, caller: Grants) -> tuple[str, ...] | None:
    """Return patterns that match what both allow; None, the default, where both are the default."""
    if own.calls == caller.calls:
        return own.calls
    shared = dict.fromkeys(
        both
        for pattern in own.call_patterns
        for other in caller.call_patterns
        if (both := _pattern(pattern, other)) is not None
    )
    return tuple(shared)


def _pattern(a: str, b: str) -> str | None:
    """Return a pattern for what both match; None where that is nothing for sure.

    Two patterns that have no single one for what they share are kept side by side: `*.x & vault.*`.
    """
    if a == b:
        return a
    for plain, other in ((a, b), (b, a)):
        if not _WILDCARDS & set(plain):
            return plain if allows([other], plain) else None
    if all(pattern[-1] == "*" and not _WILDCARDS & set(pattern[:-1]) for pattern in (a, b)):
        short, long = sorted((a, b), key=len)
        return long if long.startswith(short[:-1]) else None
    return _AND.join(dict.fromkeys([*a.split(_AND), *b.split(_AND)]))


def _smaller(own: float | None, caller: float | None, configured: float) -> Any:
    """Return the smaller limit; None, the configured one, where neither tool has one of its own."""
    if own is None and caller is None:
        return None
    return min(configured if limit is None else limit for limit in (own, caller))


def _packages(own: Grants, caller: Grants) -> tuple[str, ...] | None:
    """Return the packages that both may see, with what they need, in the interpreter that the callee runs in."""
    if caller.packages is None or own.packages == caller.packages:
        return own.packages
    theirs = package_names(caller.packages, own.python)
    if own.packages is None:
        return tuple(sorted(theirs)) if own.python != caller.python else caller.packages
    mine = package_names(own.packages, own.python)
    if mine <= theirs:
        return own.packages
    return caller.packages if theirs <= mine and own.python == caller.python else tuple(sorted(mine & theirs))
