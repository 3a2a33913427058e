"""Methods that an object has from one of its parts."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def method_of(part: str, method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return a method that calls `method` of the attribute `part`, with the same signature and docstring."""

    @functools.wraps(method)
    def forward(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(getattr(self, part), *args, **kwargs)

    @functools.wraps(method)
    async def aforward(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await cast("Any", method)(getattr(self, part), *args, **kwargs)

    return cast("Any", aforward) if inspect.iscoroutinefunction(method) else forward
